// Codes about what the trainer's arguments become: devices, strategies, environments.
#include "cli/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page setup_pages_table[] = {
    {"LS309", "the learning rate does not fit the batch (warning)",
     R"page(
What   More ranks make the batch of a step larger. The learning rate stayed, or grew more than the
       batch did: scaled twice, or scaled under dp, whose batch is the same on any number of
       devices. Between the square root and linear nothing is said.
When   The scenario says how the rate was found or is scaled: `scaling` (`linear`, `sqrt`: times
       devices x num_nodes), `base_lr`, `base_batch_size`. Lightning's Horovod strategy scales
       linearly by itself.
Fix    Scale once. `verify.ignore` where the rate is meant.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 8, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
optimizer: {SGD: {lr: 0.8, scaling: linear, base_lr: 0.1}}          # 0.8 is scaled already
data: {train: {samples: 64, batch_size: 4}}
)page"},
    {"LS310", "a tensor is on another device than what uses it",
     R"page(
What   An operation meets tensors of two devices, or a rank puts a tensor on a GPU that is another
       rank's: `.cuda(0)` on every rank, an attribute made in `__init__` that stayed on the CPU.
Seen   "Expected all tensors to be on the same device"; with `.cuda(0)` alone GPU 0 runs out of
       memory, or NCCL says "duplicate GPU detected".
Fix    `copy: {tensor: x, to: device}` (`.to(self.device)`, `.type_as(x)`); register_buffer for
       what belongs to the module: `{Buffer: {shape: [3], name: mask}}`.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {samples: 32, batch_size: 8}}
program:
  training_step:
    - let: {weights: "full(4, 1.0)"}
    - copy: {tensor: weights, to: gpu 0}                            # .cuda(0)
)page"},
    {"LS501", "the framework refuses the combination, or its processes cannot meet",
     R"page(
What   The scenario asks for something that Lightning, PyTorch or the launcher refuses before
       any training: more nodes or GPUs than there are, a strategy or an argument that the version
       has no more or not yet, a precision that the strategy or the GPU does not take, a model
       that cannot be pickled under ddp_spawn, another number of processes than the trainer's.
       Or the environment contradicts the processes that there are: two with one LOCAL_RANK, a
       node rank that counts GPUs, a port that differs from rank to rank, processes started twice.
Seen   An exception at once; of a contradictory environment a rendezvous that never ends, "address
       already in use", or several trainings side by side.
Fix    As the finding says. Leave the environment to the launcher: `lockstep explain FILE --env`
       prints what each rank should have. `expect: [refused]` makes a scenario of it.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 8, num_nodes: 2, strategy: ddp, max_epochs: 1}
)page"},
    {"LS502", "something else happens than what is asked for (warning)",
     R"page(
What   Lightning takes the arguments and does something else, with a line in its log at most: dp on
       CPU becomes ddp, 16-mixed on CPU becomes bf16-mixed, `devices` of 1.x without an accelerator
       counts processes on CPU, "3" was the GPU 3 up to 1.4 and is three GPUs since.
Fix    Ask for what you want to happen; `verify.ignore` where that is it.
)page",
     R"page(
version: 1
versions: {lightning: "1.6"}
trainer: {accelerator: cpu, devices: 2, strategy: dp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {samples: 32, batch_size: 8}}
)page"},
};

std::span<const Page> setup_pages() { return setup_pages_table; }

}  // namespace lockstep::cli
