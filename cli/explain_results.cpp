// Pages of the results that expectations name.
#include "cli/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page result_table[] = {
    {"step_time", "time of a steady optimizer step",
     "The time between the ends of two consecutive optimizer steps on rank 0. The first step is left\n"
     "out; of the others the one of median length is taken. A bare program has none.\n"
     "Example: step_time < 400 ms\n"},
    {"step_time.low", "range of a prediction (.low, .high; also of total_time)",
     "The range that calibration gives. Without calibration there is none, and an expectation about\n"
     "it is not judged: a range that rests on nothing would be worse than no range.\n"},
    {"total_time", "time of the whole program", "From the start to the last operation of any rank.\n"
     "Example: total_time == 12 ms +- 1 %\n"},
    {"throughput", "samples a second", "effective_batch_size / step_time.\n"},
    {"tokens_per_s", "tokens a second", "throughput times the sequence length of the model.\n"},
    {"mfu", "model FLOPs utilization, 0 .. 1",
     "FLOPs of forward and backward that the model needs (without recomputation; a multiply-add is\n"
     "2), by step_time and the peak of all devices for the compute type.\n"},
    {"gpu_utilization", "part of a step in which the device executes something, 0 .. 1",
     "What nvidia-smi calls utilization: kernels of computation and of communication alike.\n"},
    {"bubble", "idle part of a pipeline", "Only pipeline strategies have one.\n"},
    {"breakdown", "where a steady step of rank 0 goes",
     "breakdown.compute, .optimizer, .exposed_communication, .data, .host, .idle: they add up to the\n"
     "step. Every moment counts once, for the first of these that is under way; so\n"
     "exposed_communication is what computation does not hide. Of a bare program: of the whole run.\n"},
    {"memory", "memory of one rank's fullest device",
     "memory.peak is the most that was held at one time; memory.parameter, .gradient,\n"
     ".optimizer_state, .activation, .communication, .workspace are what it was made of then.\n"
     "The CUDA context, NCCL's buffers and fragmentation are not in it.\n"
     "Example: memory.peak < 72 GiB on rank 0\n"},
    {"transfers", "communication of a steady step and rank",
     "transfers.all_reduce counts calls, transfers.all_reduce.bytes adds their payload: of all_gather\n"
     "and gather a rank's own part, else all of it. transfers.total counts all kinds. Of a bare\n"
     "program: of the whole run.\n"
     "Example: transfers.all_reduce == 5\n"},
    {"world_size", "ranks of the run", "One process a rank.\n"},
    {"devices", "devices of all ranks", "More than ranks where a rank drives several (dp).\n"},
    {"strategy", "the strategy that the run became", "Example: strategy == 'ddp'\n"},
    {"steps", "optimizer steps of rank 0", "Of all epochs together.\n"},
    {"effective_batch_size", "samples behind one optimizer step",
     "batch_size x ranks x accumulated batches.\n"},
    {"device_batch_size", "samples that one device sees at once",
     "batch_size, divided where one rank splits its batch over several devices (dp).\n"},
    {"learning_rate", "learning rate of the first optimizer", "As it is at the start.\n"},
    {"restarts", "how often a launcher started the ranks again", "0 without an elastic launcher.\n"},
    {"samples_repeated", "samples taken more than once in an epoch",
     "Of the training loop, or of the first evaluation loop where nothing is trained.\n"},
    {"samples_missed", "samples that no rank takes in an epoch", "As samples_repeated.\n"},
    {"metric", "what a rank logged last under a key",
     "metric KEY is judged on every rank unless `on rank N` follows; at the right of ==,\n"
     "single_device is the same metric of one device that saw the same samples.\n"
     "Example: metric val/f1 == single_device +- 0.1 %\n"},
    {"checkpoint.best", "the file that a rank believes is best", "Ranks may believe differently.\n"},
};

std::span<const Page> result_pages() { return result_table; }

}  // namespace lockstep::cli
