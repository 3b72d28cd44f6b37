// Pages of the results that expectations name.
#include "explain/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page result_table[] = {
    {"step_time", "time of a steady optimizer step",
     R"page(
The time between the ends of two consecutive optimizer steps on rank 0. The first step is excluded;
the result is the median of the others. A bare program has none.
Example: step_time < 400 ms
)page"},
    {"step_time.low", "range of a prediction (.low, .high; also of total_time)",
     R"page(
The error range from a calibration: the run is simulated again with kernel times at the 5 % and the
95 % quantile of measured / predicted time of held-out trainings. Figures from data sheets are not
covered. Without a calibration there is no range (exit 5); lockstep calibrate creates one.
Example: step_time.high < 60 ms
)page"},
    {"total_time", "time of the whole program",
     R"page(
From the start to the last operation of any rank.
Example: total_time == 12 ms +- 1 %
)page"},
    {"throughput", "samples per second",
     R"page(
effective_batch_size / step_time. Where several optimizers step on one batch, the time of all of
their steps counts.
)page"},
    {"tokens_per_s", "tokens per second",
     R"page(
throughput times the sequence length of the model.
)page"},
    {"mfu", "model FLOPs utilization, 0 .. 1",
     R"page(
FLOPs of forward and backward that the samples of a step need (without recomputation and without
layers that the step skips or freezes; a multiply-add is 2), divided by step_time and by the peak of
all devices for the compute type. A value above 1 is not shown: the peak that the scenario states is
then less than what its layers use.
)page"},
    {"cost", "what the run costs, by cluster.price or a cloud's list price",
     R"page(
cost.total is total_time times the price of all nodes (or GPUs) that train; cost.per_million_samples
is the same at the steady throughput, and compares settings whose runs are of different length.
cost.currency is the currency of both. Nothing is extrapolated: a run of 20 steps costs what 20
steps cost. The time before the first and after the last operation, storage and traffic are not in
it.
Example: cost.total < 5000
)page"},
    {"gpu_utilization", "part of a step in which the device executes something, 0 .. 1",
     R"page(
The utilization that nvidia-smi shows, of one step: it counts kernels of computation and of
communication. The time that an NCCL kernel only waits for other ranks, which nvidia-smi counts as
well, is left out here; run -v and run --logs show both.
)page"},
    {"bubble", "idle part of a pipeline",
     R"page(
The part of a steady step in which the ranks of a pipeline idle: wait for one another or for a
message. It is the mean over the ranks of the first pipeline, 0 .. 1. GPipe and 1F1B of P equal
stages and m micro-batches come to (P - 1) / (m + P - 1) where messages take no time.
)page"},
    {"breakdown", "parts of a steady step of rank 0",
     R"page(
breakdown.compute, .optimizer, .exposed_communication, .data, .host, .offload, .drive and .idle add
up to the step. Every moment counts once, for the first of these that is active.
exposed_communication is the communication that does not overlap with computation, data the time
that batches are waited for,
host what the rank's thread does and kernels in host memory but for the optimizer's, offload the
copies between GPU and host memory, drive the time that local storage is read or written and the
rank waits for it. For a bare program they cover the whole run.
)page"},
    {"memory", "memory of one rank's fullest device",
     R"page(
memory.peak is the most that was held at one time; memory.parameter, .gradient,
.optimizer_state, .activation, .communication, .workspace, .gathered are what it was made of then
(gathered: whole parameters of which ranks store parts). As with torch.cuda.max_memory_allocated(),
the CUDA context, NCCL's buffers and fragmentation are not in it. memory.context is an estimate of
the CUDA context and NCCL's buffers; memory.host is the host memory of one rank, memory.drive
what it keeps on its node's local storage.
Example: memory.peak < 72 GiB on rank 0
)page"},
    {"transfers", "communication of a steady step and rank",
     R"page(
transfers.all_reduce counts calls, transfers.all_reduce.bytes adds their payload: of all_gather
and gather a rank's own part, else all of it. transfers.copy counts copies between GPUs of one rank
(dp), not those to and from the host. transfers.total counts all kinds. Of a bare
program: of the whole run.
Example: transfers.all_reduce == 5
)page"},
    {"world_size", "ranks of the run",
     R"page(
One process per rank.
)page"},
    {"devices", "devices of all ranks",
     R"page(
More than the number of ranks if a rank drives several devices (dp).
)page"},
    {"strategy", "the strategy that the run uses",
     R"page(
Example: strategy == 'ddp'
)page"},
    {"steps", "optimizer steps of rank 0",
     R"page(
The sum over all epochs.
)page"},
    {"effective_batch_size", "samples of one optimizer step",
     R"page(
batch_size x ranks x accumulated batches, or fewer where no step has so many: Lightning steps at the
end of an epoch, also within a window of accumulation.
)page"},
    {"device_batch_size", "samples that one device sees at once",
     R"page(
batch_size, divided if one rank splits its batch over several devices (dp).
)page"},
    {"learning_rate", "learning rate of the first optimizer",
     R"page(
The value at the start.
)page"},
    {"restarts", "how often a launcher restarted the ranks",
     R"page(
0 without an elastic launcher: `launcher: {torchrun: {max_restarts: 3, nproc_per_node: 8}}`.
world_size, devices and step_time are those of the last attempt, total_time is that of all.
)page"},
    {"goodput", "the part of the time that advances the training",
     R"page(
From 0 to 1. With `cluster.mtbf`: what is expected of a day at that failure rate. Without it: of
this run with its faults, the time of steps that no attempt repeats, divided by all of it.
Example: goodput >= 0.9
)page"},
    {"samples_repeated", "samples taken more than once in an epoch",
     R"page(
Counted in the training loop, or in the first evaluation loop if nothing is trained. Of a training
that was resumed within an epoch: in that epoch, over all attempts.
)page"},
    {"samples_missed", "samples that no rank takes in an epoch",
     R"page(
Counted like samples_repeated.
)page"},
    {"metric", "the last value that a rank logged under a key",
     R"page(
metric KEY is checked on every rank unless `on rank N` follows. To the right of ==, single_device
is the same metric on one device that saw the same samples.
Example: metric val/f1 == single_device +- 0.1 %
)page"},
    {"checkpoint.best", "the file that a rank considers best",
     R"page(
The best_model_path of the first ModelCheckpoint, without the folder. Ranks may differ: each
orders the files by its own value of the monitored metric.
Example: checkpoint.best == 'epoch=1-step=4.ckpt' on rank 0
)page"},
    {"checkpoint.bytes", "what a rank writes into one checkpoint",
     R"page(
Parameters, buffers and optimizer state in the files of this rank, of the last checkpoint. Counters
of steps and what the trainer adds are left out. 0 on ranks that write nothing.
Example: checkpoint.bytes == 0 B on rank 1
)page"},
    {"staleness", "how old the weights are by which gradients were computed",
     R"page(
The age of a gradient is the number of updates that the server made between the worker's pull of the
weights and its push of the gradient. staleness.mean is the mean over all gradients of all
servers, staleness.max the largest. Of W equal workers under mode: async it is W - 1 in the end.
Of PipeDream and PipeDream-2BW it is the number of updates of a stage between the forward of a batch
and its own update: of n stages n - 1 on the first one, 0 on the last, and 1 with 2BW.
Example: staleness.max <= 3
)page"},
    {"weights.apart", "how far the weights of ranks are apart at the end",
     R"page(
Where replicas differ by design: Bagua's decentralized and async algorithms, models that are
averaged now and then, workers of a server that do not wait for each other. Of each element the
largest value of a rank less the smallest; weights.apart is the greatest of these at the end,
weights.furthest_apart the greatest after any optimizer step that all ranks took. Servers do not
count. The second is known in a simulation alone.
Example: weights.apart == 0
)page"},
    {"weights.furthest_apart", "how far the weights of ranks were apart after any step",
     R"page(
The greatest difference of an element between ranks after any optimizer step that all ranks took,
where replicas differ by design. See weights.apart.
Example: weights.furthest_apart < 0.1
)page"},
    {"compiled_graphs", "how many graphs XLA compiles in a process",
     R"page(
On TPUs. A graph is what a process records between two calls of mark_step: a batch, up to the
update if the optimizer steps behind it. Batches of other sizes, batches that add gradients to
those of the window, updates that make the optimizer's state, and evaluations have graphs of their
own. Each is compiled once.
Example: compiled_graphs == 2
)page"},
};

std::span<const Page> result_pages() { return result_table; }

}  // namespace lockstep::cli
