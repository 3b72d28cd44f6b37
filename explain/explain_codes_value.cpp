// Pages of the codes of races, wrong values, memory and refused combinations.
#include "explain/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page value_pages_table[] = {
    {"LS201", "data is used before the operation that makes it has ended",
     R"page(
What   The result of asynchronous work, or the data it works on, is read or changed before the
       work was waited for. The same holds for a tensor on the host before the non_blocking copy
       that fills it has ended. Data that an operation only reads (all_gather, send) may be read.
Seen   Sometimes old or half-written values; nothing is raised.
Fix    Wait for the work before using its data.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {x: "full(4, 1.0)"}
    - all_reduce: {tensor: x, async: true, as: work}
    - let: {y: x + 1}                                             # too early
    - wait: work
)page"},
    {"LS202", "a buffer is overwritten or released while it is in flight",
     R"page(
What   An operation on another stream still uses a buffer when it is overwritten, or when the
       last name of its tensor goes: by a new value for the name, by `del`, or at the end of a
       hook. The memory then belongs to the stream that allocated it, whose next tensor may get
       it at once.
Seen   Corrupted values that come and go with the load.
Fix    Let the allocating stream wait for the other one first, or call x.record_stream(stream).
Not    c10d keeps the tensors of its own calls, so that dropping them is no finding: with Gloo
       until a call has run; with NCCL until an async call has finished (before torch 2.7 by
       record_stream, since then in its Work until wait(), or until a watchdog sees the end).
       It is a finding where c10d does not:
         - from torch 2.2 on, a call without async on a stream that did not allocate the tensor
           (2.7 also: an async one, once it was waited for on such a stream)
         - torch 2.0 to 2.6 with TORCH_NCCL_AVOID_RECORD_STREAMS=1, an async collective whose
           work is dropped without wait(); from 2.7 on the variable has no effect
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {x: "full(4, 1.0)"}
    - kernel: {time: 1 ms, stream: side, reads: [x]}
    - kernel: {time: 1 ms, writes: [x]}                           # `side` still reads it
)page"},
    {"LS203", "two accesses of one buffer are not ordered",
     R"page(
What   Two streams write one buffer, and neither waits for the other.
Seen   The last write wins, and which one is last changes from run to run.
Fix    Use one stream for both, or let one stream wait for the other.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {x: "full(4, 1.0)"}
    - kernel: {time: 1 ms, stream: side, writes: [x]}
    - kernel: {time: 1 ms, writes: [x]}     # before it: wait_stream: {stream: side, on: compute}
)page"},
    {"LS304", "samples are used twice or never",
     R"page(
What   A distributed sampler pads the data set to a multiple of the world size, so that some
       samples are evaluated twice; or it drops the remainder; or there is none, and every rank
       takes the whole data set.
       Or torchrun has started the ranks again, and the training was resumed within an epoch: the
       number of the batch continues, and the DataLoader begins its order anew.
Level  Padding is a warning: how much it changes depends on the samples, and the finding lists the
       values that it changes. Samples that no rank evaluates, and training in which ranks do not
       divide the data set, are errors.
Seen   A metric that differs slightly from that of a single GPU, and by world size.
Fix    Make the number of samples a multiple of the ranks; or evaluate without padding
       (`sampler: unrepeated`) and log metric objects; or drop repeated samples by their
       index. Save checkpoints at the end of epochs, or use a DataLoader with a state_dict.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
data: {batch_size: 4, train: {samples: 16}, val: {samples: 21}}     # 11 each: sample 0 counts twice
)page"},
    {"LS305", "replicas of one parameter differ",
     R"page(
What   Data parallel ranks hold different values of a parameter that should be equal on all.
Why    Different initial values, a step that some ranks skipped, a gradient that was not
       exchanged (no_sync, a forward past the wrapper, noop_hook), a change on only one rank.
       Under post-localSGD: the run ended before the second averaging of the models.
       Under FSDP each rank holds a part: then a part that was not updated as the others were.
       With parameter servers: a worker ended before the others.
       As a warning: running statistics of batch norm that nothing sends (parameter servers,
       Horovod, Bagua, FSDP, DeepSpeed, and DDP with broadcast_buffers: false).
Fix    Start from the same values, and change parameters only by values that all ranks share.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {samples: 32, batch_size: 4}}
program:
  training_step:
    - forward: {through: module}                                  # past the wrapper of ddp
)page"},
    {"LS306", "the run does not compute what one device would",
     R"page(
What   Parameters after training differ from those of one device that saw the same samples
       (the micro-batches of all ranks as one batch) by more than rounding explains.
Why    Ranks with unequal batches are averaged with equal weight; a scale is missing or doubled.
       Batch norm normalises each device's part of the batch by itself: then it is a warning.
Fix    Weight each rank by its number of samples, or give every rank the same number.
)page",
     R"page(
version: 1
versions: {lightning: "1.9"}
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: dp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {samples: 30, batch_size: 5}}                         # chunks of 3 and 2
)page"},
    {"LS308", "state is lost with a replica",
     R"page(
What   Under dp a step hook runs on copies of the module that are discarded after the step.
       Attributes that it sets (`self.NAME`) are lost with them.
Seen   Counters that stay 0, lists that stay empty; nothing is raised.
Fix    Return the value and bind it in training_step_end, or use ddp.
)page",
     R"page(
version: 1
versions: {lightning: "1.9"}
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: dp, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
data: {train: {samples: 32, batch_size: 4}}
program:
  on_train_start: [{let: {self.steps_seen: 0.0}}]
  training_step: [{let: {self.steps_seen: self.steps_seen + 1.0}}]
)page"},
    {"LS311", "a metric receives both logits and probabilities",
     R"page(
What   A metric of probabilities takes a batch in which any score lies outside of [0, 1] as logits,
       and puts all of it through a sigmoid (softmax for classes). Another batch of the same metric
       lies within [0, 1] and is used as it is. TorchMetrics decides for each update separately.
Seen   Nothing is raised. The metric depends on how samples are grouped into batches, and so on
       the number of ranks.
Fix    Apply sigmoid or softmax before the update; or look for scores that are out of range.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1, num_sanity_val_steps: 0}
data:
  train: {samples: 16}
  val: {samples: 8, batch_size: 2, values: {score: [0.2, 0.9, 0.4, 0.6, 0.8, 7.0, 0.3, 0.1],
                                            target: [0, 1, 0, 1, 1, 0, 1, 0]}}     # 7.0
metrics: {f1: BinaryF1Score}
program:
  validation_step: [{update: f1}, {log: {name: f1, value: f1}}]
)page"},
    {"LS312", "a metric or list accumulates over several epochs",
     R"page(
What   A metric object is computed by hand and never reset, so it still counts the batches of
       earlier epochs and of the sanity check. Lightning resets objects given to `self.log` at the
       end of the epoch, but not after `compute()`. Or one object is updated in training and in
       validation, which runs within training: each resets the other's state. Or a list on the
       module collects the outputs of batches, and no statement empties it when the epoch ends:
       the outputs of the sanity check are still in it.
Level  An error where a logged value is computed from it, else a warning.
Seen   A curve that moves less and less, and that begins with the score of the untrained model.
       Callbacks that monitor it stop too late, or keep an early checkpoint as the best.
Fix    `- reset: NAME` after `- compute: NAME`, or `- log: {name: .., value: NAME}`; one object
       per stage. For a list `- let: {self.NAME: "[]"}` at the end of the hook, in Python
       `self.NAME.clear()`.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 2, num_sanity_val_steps: 0}
data: {train: {samples: 16}, val: {samples: 16}}
metrics: {f1: BinaryF1Score}
program:
  validation_step: [{update: f1}]
  on_validation_epoch_end:
    - compute: {metric: f1, as: value}                     # and no reset
    - log: {name: val_f1, value: value}
)page"},
    {"LS313", "a non-root rank reads the output of reduce",
     R"page(
What   `reduce` gives its result to one rank. Gloo reduces in the memory of all ranks, so the
       tensor of every other rank then holds partial sums; NCCL leaves it unchanged. This tensor
       is read or passed to another call.
Seen   Wrong values on other ranks, or a second reduce whose result is too large.
Fix    Read the result on its destination only, or use all_reduce.
)page",
     R"page(
version: 1
cluster: {ranks: 3, network: {bandwidth: 25 GB/s, latency: 2 us}}
process_group: {backend: gloo}
program:
  main:
    - let: {x: "full(4, 1.0 + rank)"}
    - reduce: {tensor: x, dst: 0}
    - reduce: {tensor: x, dst: 0}       # x of the other ranks has changed
)page"},
    {"LS314", "replicas begin with different weights",
     R"page(
What   No rank sends its parameters to the others before the first step, and each rank has drawn its
       own: a script without hvd.broadcast_parameters, or DistributedDataParallel with
       init_sync=False.
Why    Averaging gradients makes the steps of the ranks equal, not their weights. Replicas keep the
       distance with which they begin, and each gradient is a mean over different models.
Seen   A loss that is higher than on one device, validation that depends on the rank, and a
       checkpoint of one of the models. Nothing raises.
Fix    hvd.broadcast_parameters(model.state_dict(), root_rank=0), or init_sync=True. Or let all
       ranks draw the same weights (seed_everything), or load the same checkpoint on each.
Note   Lockstep takes ranks to be seeded differently unless the scenario gives `seed_everything`, or
       `initial` values for all parameters.
)page",
     R"page(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 2, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0, strategy: {DDPStrategy: {init_sync: false}}}
data: {train: {samples: 32, batch_size: 4}}
)page"},
    {"LS401", "a device or a host runs out of memory",
     R"page(
What   An allocation asks for more than the device has left. The finding says what the
       memory was used for at that moment. Or the ranks of a node need more host memory
       together than it has (cluster.memory): batches, and what is offloaded.
Fix    Lower the batch size; shard parameters, gradients or optimizer state; recompute
       activations; offload. `lockstep run` shows the parts before anything is rented.
Beware The CUDA context and NCCL's buffers come on top. They are estimated (memory.context): a peak
       that leaves less than that is a warning. Fragmentation is not modelled.
)page",
     R"page(
version: 1
cluster: {ranks: 2, gpu: {memory: 1 MiB}, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {x: "full(400_000, 1.0)"}                              # 1.6 MB
)page"},
    {"LS402", "a slow rank lets the others run into the timeout",
     R"page(
What   In one call the others wait longer for the last rank than the timeout of the group allows:
       the watchdog kills them, although every rank would have come.
Fix    Raise process_group.timeout, or do the slow work on all ranks, or outside the group.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
process_group: {timeout: 1 min}
program:
  main:
    - {if: rank == 0, then: [{host: 2 min}]}                      # writes a checkpoint
    - barrier
)page"},
    {"LS403", "asynchronous work is never waited for (warning)",
     R"page(
What   A call with `async: true`, and the program ends without `wait` for it. With NCCL
       `synchronize` does instead.
Seen   Nothing, where the work happens to finish in time; else data that is changed while it
       is sent, results that nobody may use, an error that is raised nowhere, or a process that
       ends while its peer still receives. With Gloo (seen in torch 2.11) an isend or irecv
       whose handle goes before it has finished is lost: its peer waits until the timeout.
Fix    Give the work a name with `as` and `wait` for it before its data is used or changed.
)page",
     R"page(
version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
program:
  main:
    - let: {x: "full(4, 1.0)"}
    - all_reduce: {tensor: x, async: true}                        # no `- wait: x`
)page"},
    {"LS404", "a batch of another size is compiled anew (warning)",
     R"page(
What   On TPUs XLA compiles a graph for the shapes of its tensors. The last batch of an epoch has
       fewer samples than the others, so that each graph that it goes through is compiled once
       more. Graphs are kept: a later epoch finds those of both sizes.
Seen   One step of the first epoch takes seconds to minutes longer than its neighbours. How long
       XLA compiles is not modelled.
Fix    `drop_last: true`, or a batch_size that divides the samples of each rank.
)page",
     R"page(
version: 1
cluster: {preset: tpu-v3-8, nodes: 1}
model: {input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}
data: {train: {samples: 80, batch_size: 4}}                         # each of 8 cores: 4, 4 and 2
trainer: {accelerator: tpu, devices: 8, max_epochs: 1, num_sanity_val_steps: 0,
          limit_val_batches: 0}
)page"},
};

std::span<const Page> value_pages() { return value_pages_table; }

}  // namespace lockstep::cli
