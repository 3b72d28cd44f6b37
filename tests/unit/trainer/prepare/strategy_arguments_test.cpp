#include "model/trainer/prepare/strategy_arguments.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace strategy_arguments_test {

namespace {

Object strategy_of(const std::string& strategy) {
  return *scenario_of(
              "version: 1\nmodel: {input: [4], layers: [{Linear: [4, 2]}]}\n"
              "data: {train: {samples: 8}}\n"
              "trainer: {accelerator: gpu, devices: 2, strategy: " +
              strategy + "}\n")
              .trainer->strategy;
}

}  // namespace

TEST_CASE("what a map holds is an argument behind the map's name") {
  const StrategyArguments arguments = strategy_arguments_of(
      strategy_of("{ModelParallelStrategy: {data_parallel_size: 4, fully_shard: {modules: [A, B], "
                  "mesh: [2, 2], reshard_after_forward: false, mp_policy: null}}}"));
  CHECK(arguments.integer("data_parallel_size", 0) == 4);
  CHECK(arguments.texts("fully_shard.modules") == std::vector<std::string>{"A", "B"});
  CHECK_FALSE(arguments.boolean("fully_shard.reshard_after_forward", true));
  CHECK(arguments.is_none("fully_shard.mp_policy"));
}

TEST_CASE("a strategy is written again with a few arguments of different values") {
  const Object strategy = strategy_of(
      "{ModelParallelStrategy: {data_parallel_size: 4, fully_shard: {modules: [A, B], mesh: [2, "
      "2]}}}");
  CHECK(text_with(strategy, {{"data_parallel_size", "8"}, {"fully_shard.mesh", "[4, 2]"}}) ==
        "{ModelParallelStrategy: {data_parallel_size: 8, fully_shard: {modules: [A, B], mesh: [4, "
        "2]}}}");
  CHECK(text_with(strategy_of("ddp"), {{"join", "true"}}) == "ddp");  // nothing is added
}

}  // namespace strategy_arguments_test
