// Codes about what the trainer's arguments become: devices, strategies, environments.
#include "cli/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page setup_pages_table[] = {
    {"LS501", "the framework refuses the combination",
     R"page(
What   The scenario asks for something that Lightning, PyTorch or the launcher refuses before
       any training: more nodes or GPUs than there are, a strategy or an argument that the version
       has no more or not yet, a precision that the strategy or the GPU does not take, a model
       that cannot be pickled under ddp_spawn, another number of processes than the trainer's.
Fix    As the finding says. `expect: [refused]` makes a scenario of it.
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
    {"LS503", "the environment contradicts the processes",
     R"page(
What   A variable that tells a process its rank, or where to meet, does not fit the processes that
       there are: two processes with one LOCAL_RANK, a node rank that counts GPUs, a port that
       differs from rank to rank, processes that are started twice.
Seen   A rendezvous that never ends, "address already in use", or several trainings side by side.
Fix    Leave the variables to the launcher. `lockstep explain FILE --env` prints what each rank
       should have.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 3, strategy: ddp, max_epochs: 1}
env: {NODE_RANK: "{rank}"}                                          # three GPUs of one machine
)page"},
};

std::span<const Page> setup_pages() { return setup_pages_table; }

}  // namespace lockstep::cli
