// fully_shard around the stages of a pipeline: what it refuses.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace sharded_pipeline_test {

namespace {

Problem stop_of(const std::string& strategy, bool ties = false) {
  const std::string last =
      ties ? "{Linear: {in_features: 4, out_features: 4, bias: false, tied_to: first}}"
           : "{Linear: {in_features: 4, out_features: 4}}";
  const Preparation preparation = prepare(
      scenario_of("version: 1\nmodel: {layers: [{Linear: {in_features: 4, out_features: 4, bias: "
                  "false}, name: first}, {repeat: 4, layers: [{Linear: {in_features: 4, "
                  "out_features: 4}}]}, " +
                  last +
                  "]}\ndata: {train: {samples: 64, batch_size: 8}}\ntrainer: {accelerator: gpu, "
                  "devices: 4, max_steps: 1,\n  strategy: {PipelineStrategy: {" +
                  strategy + "}}}\n"),
      standard_strategies());
  for (const Problem& problem : preparation.problems) {
    if (problem.stops()) {
      return problem;
    }
  }
  return {Problem::Kind::note, {}, ""};
}

}  // namespace

TEST_CASE("what fully_shard cannot be around stages says so at its place") {
  const std::string two = "pipeline_parallel_size: 2, ";
  CHECK(stop_of(two + "fully_shard: {modules: [Linear]}").message.empty());
  const auto unmodelled = [](const Problem& stop, const std::string& part) {
    INFO(stop.message);
    CHECK(stop.kind == Problem::Kind::unsupported);
    CHECK(stop.message.find(part) != std::string::npos);
    CHECK(stop.place.line == 5);
  };
  unmodelled(stop_of("schedule: PipeDream, fully_shard: {modules: [Linear]}"),
             "fully_shard with PipeDream");
  unmodelled(stop_of("pipeline_parallel_size: 1, stages: 1, fully_shard: {modules: [Linear], "
                     "reshard_after_forward: 2}"),
             "a number for reshard_after_forward");
  unmodelled(stop_of(two + "fully_shard: {modules: [Linear], ignored_params: [Linear]}"),
             "`ignored_params` in a pipeline");
  unmodelled(stop_of(two + "fully_shard: {modules: [Linear]}, split: [3]", true), "share a weight");
  const Problem mesh = stop_of(two + "fully_shard: {modules: [Linear], mesh: [2, 2]}");
  CHECK(mesh.kind == Problem::Kind::refused);
  CHECK(mesh.message.starts_with("RuntimeError: Mesh should not be bigger"));
  const Problem name = stop_of(two + "fully_shard: {module: [Linear]}");
  CHECK(name.kind == Problem::Kind::invalid);
  CHECK(name.message == "`fully_shard` of PipelineStrategy has no argument `module`");
}

}  // namespace sharded_pipeline_test
