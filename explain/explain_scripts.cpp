// Pages of what scripts call or override beside the Trainer.
#include "explain/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page script_table[] = {
    {"init_dist_connection", "an override that joins the processes of a script of 1.x",
     R"page(
A script of Lightning 1.x overrides it, or `init_ddp_connection`, or `setup_distributed` of
DDPPlugin, to pass arguments to torch.distributed.init_process_group. A scenario has keys for them:

  backend="gloo"                     process_group: {backend: gloo}
  timeout=timedelta(minutes=5)       process_group: {timeout: 5 min}
  init_method="tcp://node0:29500"    env: {MASTER_ADDR: node0, MASTER_PORT: "29500"}

As a hook of `program` the name is an error that shows these keys.
)page"},
    {"configure_ddp", "an override that wraps the model of a script of 1.x",
     R"page(
A script of Lightning 1.x overrides it to pass arguments to DistributedDataParallel. They are
arguments of the strategy:

  find_unused_parameters=True
      trainer: {strategy: {DDPStrategy: {find_unused_parameters: true}}}

As a hook of `program` the name is an error that shows this.
)page"},
    {"find_usable_cuda_devices", "the GPUs that no other experiment on the machine holds",
     R"page(
find_usable_cuda_devices(2) (1.9 on, before `auto_select_gpus`) makes a tensor on one GPU after the
other and takes the first two on which that works. A GPU that another experiment uses fails only
where the administrator has set it to exclusive mode; else both share it. Two experiments that
start at the same moment may find the same GPU.

In a scenario, with the GPUs that others hold in exclusive mode:

  cluster: {preset: dgx-a100, nodes: 1, occupied: [0, 1]}
  trainer: {accelerator: gpu, devices: {find_usable_cuda_devices: 2}}

takes GPUs 2 and 3. Each experiment is a scenario of its own: that several share a host, its disk
or its network is not modelled.
)page"},
    {"Fabric", "a script with a loop of its own, on Lightning's strategies",
     R"page(
Lockstep follows the loop of the Trainer. A script of Lightning Fabric has a loop of its own on the
same strategies, so it is described as manual optimization without what the Trainer adds:

  trainer: {accelerator: gpu, devices: 8, strategy: ddp, max_epochs: 1,
            num_sanity_val_steps: 0, enable_checkpointing: false, logger: false}
  program:
    automatic_optimization: false
    training_step: [forward, zero_grad, backward, optimizer_step]

Memory, the exchange of gradients, hangs and wrong values are those of the script. Calls of the
Trainer that Fabric does not have remain: barriers around the setup and the loaders, and a broadcast
of 1 B in each step for signals, which `versions: {lightning: "2.5.2"}` does not have.

  fabric.backward(loss)              backward
  fabric.no_backward_sync(model)     no_sync: {do: [forward, backward]}
  fabric.all_reduce(x)               all_reduce: {tensor: x, op: avg}
  fabric.all_gather(x)               all_gather: {tensor: x}
  fabric.barrier()                   barrier
)page"},
};

std::span<const Page> script_pages() { return script_table; }

}  // namespace lockstep::cli
