#include "tests/property/long_pipeline.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/property/draws.hpp"

namespace lockstep::test {

namespace {

// Narrow ones wait for their hosts, wide ones have their hosts wait.
std::string layers(int64_t width, int32_t blocks) {
  std::string text = fmt::format("{{Linear: [6, {}]}}, ReLU", width);
  for (int32_t block = 0; block < blocks; ++block) {
    text += fmt::format(", {{Linear: [{0}, {0}]}}, GELU", width);
  }
  return text + fmt::format(", {{Linear: [{}, 3]}}", width);
}

std::string torch_pipeline(int32_t stages, int64_t micro_batches) {
  const std::string schedule =
      one_of({"1F1B", "1F1B", fmt::format("Interleaved1F1B, stages: {}", 2 * stages),
              fmt::format("InterleavedZeroBubble, stages: {}", 2 * stages), "GPipe",
              fmt::format("ZBVZeroBubble, stages: {}", 2 * stages)});
  const std::string shards = one_of({"", "", "", ", fully_shard: {}"});
  return fmt::format(
      "{{PipelineStrategy: {{schedule: {}, n_microbatches: {}, pipeline_parallel_size: {}{}}}}}",
      schedule, micro_batches, stages, shards);
}

std::string megatron(int32_t stages, int32_t tensor_ranks, int64_t samples, int64_t of_all) {
  const std::string virtual_stages = one_of({"", "", ", virtual_pipeline_model_parallel_size: 2"});
  const std::string buffers =
      one_of({"", ", ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true}",
              ", ddp: {use_distributed_optimizer: true, overlap_param_gather: true, "
              "overlap_grad_reduce: true}"});
  return fmt::format(
      "{{MegatronStrategy: {{pipeline_model_parallel_size: {}, tensor_model_parallel_size: {}, "
      "micro_batch_size: {}, global_batch_size: {}{}{}}}}}",
      stages, tensor_ranks, samples, of_all, virtual_stages, buffers);
}

std::string faults(int32_t ranks) {
  const std::string at =
      one_of({fmt::format("step {}", *rc::gen::inRange(0, 5)),
              fmt::format("{} us", *rc::gen::inRange(1, 60) * *rc::gen::element(10, 100, 1000))});
  const std::string where = fmt::format("rank: {}, at: {}", *rc::gen::inRange(0, ranks), at);
  const std::string call = fmt::format(", call: {}", *rc::gen::element(20, 60, 200));
  return "faults: [" +
         one_of({"{straggler: {slowdown: 3.0, " + where + "}}",
                 "{straggler: {slowdown: 20.0, for: 900 us, " + where + "}}",
                 "{lost_rank: {" + where + "}}", "{lost_message: {" + where + call + "}}",
                 "{exception: {" + where + "}}",
                 "{slow_link: {between: [gpu 0, gpu 1], bandwidth: 1 %, at: " + at + "}}"}) +
         "]\n";
}

}  // namespace

rc::Gen<LongTraining> long_pipelines() {
  return rc::gen::exec([] {
    LongTraining training;
    const int32_t stages = *rc::gen::element(2, 2, 3, 4);
    const int32_t columns = *rc::gen::element(1, 1, 2);
    training.ranks = stages * columns;
    const int64_t micro_batches = stages * (8 + drawn_below(28)) + (once_in(4) ? 1 : 0);
    const int64_t samples = *rc::gen::element<int64_t>(1, 2);
    training.layers =
        layers(*rc::gen::element<int64_t>(8, 8192, 8192), *rc::gen::element(6, 16, 30) * stages);
    training.cluster = "{preset: dgx-a100, nodes: 1}";
    training.accelerator = "gpu";
    training.batch = micro_batches * samples;
    training.batches = 1 + drawn_below(4);
    training.epochs = 1 + drawn_below(2);
    training.loader = ", drop_last: true";
    if (*rc::gen::element(true, false)) {
      const bool has_tensor_ranks = columns == 2 && *rc::gen::element(true, false);
      training.strategy = megatron(stages, has_tensor_ranks ? 2 : 1, samples,
                                   training.batch * (has_tensor_ranks ? 1 : columns));
    } else {
      training.strategy = torch_pipeline(stages, micro_batches);
    }
    training.trainer = one_of({"", "", ", log_every_n_steps: 1", ", accumulate_grad_batches: 2"});
    if (*rc::gen::element(true, false, false)) {
      training.validation = fmt::format(", val: {{samples: {}, batch_size: {}}}",
                                        2 * training.batch * training.ranks, training.batch);
    }
    training.program = one_of({"", "",
                               "program: {on_train_batch_end: [{if: rank == 1, then: "
                               "[{host: 200 us}]}]}\n"});
    if (once_in(4)) {
      training.more += faults(training.ranks);
    }
    training.more += one_of({"", "", "versions: {kernels: pytorch}\n"});
    return training;
  });
}

}  // namespace lockstep::test
