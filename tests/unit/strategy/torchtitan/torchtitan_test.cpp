// torchtitan's configuration: what its degrees come to, what it refuses, and where stages are cut.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/strategy/pipeline/stage_cuts.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace torchtitan_test {

namespace {

Preparation prepared(const std::string& degrees, int devices) {
  return prepare(
      scenario_of("version: 1\ndata: {train: {samples: 64, batch_size: 8}}\ntrainer: {accelerator: "
                  "gpu, devices: " +
                  std::to_string(devices) + ", max_steps: 1,\n  strategy: {TorchTitan: {" +
                  degrees + "}}}\n"),
      standard_strategies());
}

/// The note that says what the configuration is.
std::string behind(const std::string& degrees, int devices) {
  const Preparation preparation = prepared(degrees, devices);
  const std::string begin = "TorchTitan on " + std::to_string(devices) + " ranks comes to ";
  for (const Problem& problem : preparation.problems) {
    if (problem.message.starts_with(begin)) {
      CHECK(problem.kind == Problem::Kind::note);
      return problem.message.substr(begin.size());
    }
  }
  return "";
}

Problem stop_of(const std::string& degrees, int devices) {
  for (const Problem& problem : prepared(degrees, devices).problems) {
    if (problem.stops()) {
      return problem;
    }
  }
  return {};
}

/// Six blocks of two layers between two layers and one.
Network blocks_between_ends(size_t before = 2) {
  Network network;
  network.layers.resize(before + 6 * 2 + 1);
  for (size_t block = 0; block < 6; ++block) {
    const size_t first = before + 2 * block;
    network.blocks.push_back({"Block", first, first + 1});
    network.blocks.back().repeats = true;
  }
  return network;
}

std::vector<StageLayers> cut(int32_t stages, EndsInBlocks ends) {
  return cut_into_stages(blocks_between_ends(), stages, StageSplit::blocks, ends).stages;
}

}  // namespace

TEST_CASE("degrees of torchtitan come to a strategy") {
  const std::string types = "mp_policy: {param_dtype: bf16, reduce_dtype: fp32}";
  CHECK(behind("", 8) ==
        "{ModelParallelStrategy: {data_parallel_size: 8, fully_shard: {modules: "
        "blocks, " +
            types + "}, tensor_parallel_size: 1}}");
  CHECK(behind("data_parallel_replicate_degree: 2", 8) ==
        "{ModelParallelStrategy: {data_parallel_size: 8, fully_shard: {mesh: [2, 4], modules: "
        "blocks, " +
            types + "}, tensor_parallel_size: 1}}");
  CHECK(behind("data_parallel_replicate_degree: 4, data_parallel_shard_degree: 1", 4) == "ddp");
  CHECK(behind("", 1) == "single_device");
  CHECK(behind("tensor_parallel_degree: 4", 4) ==
        "{ModelParallelStrategy: {data_parallel_size: 1, parallelize_plan: auto, "
        "tensor_parallel_size: 4}}");
  // A pipeline keeps what is gathered, by default.
  CHECK(behind("pipeline_parallel_degree: 2, pipeline_parallel_microbatch_size: 2", 4) ==
        "{PipelineStrategy: {first_stage_less_blocks: 1, fully_shard: {modules: blocks, " + types +
            ", reshard_after_forward: false}, last_stage_less_blocks: 1, n_microbatches: 4, "
            "pipeline_parallel_size: 2, schedule: 1F1B}}");
  CHECK(behind("pipeline_parallel_degree: 2, fsdp_reshard_after_forward: always", 4)
            .find("reshard_after_forward: true") != std::string::npos);
}

TEST_CASE("what torchtitan refuses is refused at its place") {
  const auto refused = [](const std::string& degrees, int devices, const std::string& begin) {
    INFO(degrees);
    const Problem stop = stop_of(degrees, devices);
    CHECK(stop.kind == Problem::Kind::refused);
    CHECK(stop.message.substr(0, begin.size()) == begin);
    CHECK(stop.place.line == 4);
  };
  refused("data_parallel_shard_degree: 3", 8,
          "AssertionError: Invalid parallel dims: dp_replicate(1)");
  CHECK(stop_of("tensor_parallel_degree: 3", 4).remedy ==
        "write tensor_parallel_degree: 1, 2 or 4, and degrees whose product is 4");
  CHECK(stop_of("tensor_parallel_degree: 2, pipeline_parallel_degree: 4", 4).remedy ==
        "write data_parallel_shard_degree: -1, and others whose product divides 4");
  // Its user gives micro-batches a size, where torch counts them.
  const Problem few =
      stop_of("pipeline_parallel_degree: 4, pipeline_parallel_microbatch_size: 4", 4);
  CHECK(few.message.find("Number of microbatches (2)") != std::string::npos);
  CHECK(few.message.ends_with("(data.train.batch_size 8 / pipeline_parallel_microbatch_size)"));
  CHECK(few.remedy.starts_with("make it smaller, or data.train.batch_size larger"));
  CHECK(stop_of("pipeline_parallel_degree: 4, pipeline_parallel_microbatch_size: 3", 4).remedy ==
        "write pipeline_parallel_microbatch_size: 1, 2, 4 or 8, which divides "
        "data.train.batch_size");
  refused("tensor_parallel_degree: 0", 8,
          "AssertionError: Parallelism degree should be >= 1, except for dp_shard");
  refused("data_parallel_shard_degree: 0", 8, "AssertionError: dp_shard must -1 or >=1.");
  refused(
      "data_parallel_replicate_degree: 2, data_parallel_shard_degree: 1, tensor_parallel_degree: 2",
      4, "RuntimeError: DDP has not supported > 1D parallelism");
  refused("fsdp_reshard_after_forward: sometimes", 8,
          "ValueError: Invalid reshard_after_forward_policy: sometimes.");
  refused("pipeline_parallel_degree: 2, pipeline_parallel_microbatch_size: 3", 8,
          "ValueError: Batch size 8 must be divisible");
  for (const char* unmodelled :
       {"context_parallel_degree: 2", "expert_parallel_degree: 2", "disable_loss_parallel: true",
        "enable_async_tensor_parallel: true", "pipeline_parallel_layers_per_stage: 4"}) {
    INFO(unmodelled);
    CHECK(stop_of(unmodelled, 8).kind == Problem::Kind::unsupported);
  }
}

// generate_llm_fqn_per_model_part: (6 blocks + 1 + 1) / 4 stages is 2 each, of which the embedding
// is one of the first stage's and norm and output one of the last stage's.
TEST_CASE("ends that count as blocks leave their stages fewer") {
  CHECK(cut(4, {1, 1}) == std::vector<StageLayers>{{0, 4}, {4, 8}, {8, 12}, {12, 15}});
  // 6 / 4: the first two stages have two blocks, the others one.
  CHECK(cut(4, {}) == std::vector<StageLayers>{{0, 6}, {6, 10}, {10, 12}, {12, 15}});
  // 9 / 3: three each, two of which are the embedding's: one block, three, two and the end.
  CHECK(cut(3, {2, 1}) == std::vector<StageLayers>{{0, 4}, {4, 10}, {10, 15}});
  // The embedding may be a stage of its own, but a stage without layers is none.
  CHECK(cut(4, {2, 0}) == std::vector<StageLayers>{{0, 2}, {2, 6}, {6, 10}, {10, 15}});
  CHECK_FALSE(
      cut_into_stages(blocks_between_ends(0), 4, StageSplit::blocks, {2, 0}).why_not.empty());
  CHECK_FALSE(
      cut_into_stages(blocks_between_ends(), 4, StageSplit::blocks, {0, 2}).why_not.empty());
}

}  // namespace torchtitan_test
