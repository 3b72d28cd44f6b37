// Codes about what the trainer's arguments become: devices, strategies, environments.
#include "explain/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page setup_pages_table[] = {
    {"LS309", "the learning rate does not fit the batch (warning)",
     R"page(
What   More ranks make the batch of a step larger. The learning rate stayed, or grew more than the
       batch did: scaled twice, or scaled under dp, whose batch is the same on any number of
       devices. Anything from square-root to linear scaling is accepted.
When   The scenario says how the rate was found or is scaled: `scaling` (`linear`, `sqrt`: times
       devices x num_nodes), `base_lr`, `base_batch_size`. Lightning's Horovod strategy scales
       linearly by itself.
       Also after a restart of torchrun with fewer nodes: the batch of a step shrinks, and the
       optimizer's state brings the rate of before.
Fix    Scale once. Use `verify.ignore` if the rate is intended.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 8, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
optimizer: {SGD: {lr: 0.8, scaling: linear, base_lr: 0.1}}          # 0.8 is scaled already
data: {train: {samples: 64, batch_size: 4}}
)page"},
    {"LS310", "a tensor is on the wrong device",
     R"page(
What   An operation gets tensors of two devices, or a rank puts a tensor on another rank's GPU:
       `.cuda(0)` on every rank, or an attribute created in `__init__` that stayed on the CPU.
Seen   "Expected all tensors to be on the same device"; with `.cuda(0)`, GPU 0 runs out of
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
What   Lightning, PyTorch or the launcher rejects the scenario before training: more nodes or GPUs
       than exist, a strategy or an argument that this version does not have, a precision that the
       strategy or the GPU does not support, a model that cannot be pickled under ddp_spawn, or a
       number of processes that differs from the trainer's.
       Or the environment contradicts the processes: two with one LOCAL_RANK, a node rank that
       counts GPUs, a port that differs by rank, processes started twice.
Seen   An exception at once; with a contradictory environment a rendezvous that never ends,
       "address already in use", or several trainings in parallel.
Fix    As the finding says. Leave the environment to the launcher: `lockstep explain FILE --env`
       prints what each rank should have. `expect: [refused]` expects the rejection.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 8, num_nodes: 2, strategy: ddp, max_epochs: 1}
)page"},
    {"LS502", "a setting is silently changed, or without effect",
     R"page(
What   Lightning accepts the arguments and changes them, at most with a line in its log: dp on
       CPU becomes ddp, 16-mixed on CPU becomes bf16-mixed, `devices` of 1.x without an accelerator
       counts processes on CPU, "3" was the GPU 3 up to 1.4 and is three GPUs since.
       Or torchrun starts all ranks again (`max_restarts`), and the training begins anew: fit() has
       no ckpt_path, no ModelCheckpoint has save_last, or each attempt looks into the folder of its
       own logger, which is new (an error). Or its weights are on parameter servers, which load no
       checkpoint.
Fix    Write the setting that you want; use `verify.ignore` if the change is intended. After a
       restart a training continues with ModelCheckpoint(dirpath=.., save_last=True) and
       fit(ckpt_path="last").
)page",
     R"page(
version: 1
versions: {lightning: "1.6"}
trainer: {accelerator: cpu, devices: 2, strategy: dp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {samples: 32, batch_size: 8}}
)page"},
    {"LS503", "the framework raises for how the model is wrapped",
     R"page(
What   The set-up succeeds, and the first step raises on every rank, because of which modules are
       units of their own: layers of different FSDP units share a weight, of which one unit keeps
       a shard; or a checkpointed module meets FairScale's FullyShardedDataParallel so that a unit
       is left in the wrong state, or freed too early.
Seen   "size mismatch", "'weight' must be 2-D", "setStorage: .. storage of size 0", or an
       AssertionError about TrainingState.
Fix    As the finding says. `expect: [raises]` expects the exception.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
model:
  input: [8]
  layers:
    - {Embedding: {num_embeddings: 16, embedding_dim: 8, name: table}}
    - {Linear: {in_features: 8, out_features: 16, bias: false, tied_to: table}}
  loss: CrossEntropyLoss
data: {train: {samples: 16, batch_size: 4}}
trainer: {accelerator: gpu, devices: 2, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0, strategy: {FSDPStrategy: {auto_wrap_policy: [Embedding, Linear]}}}
)page"},
};

std::span<const Page> setup_pages() { return setup_pages_table; }

}  // namespace lockstep::cli
