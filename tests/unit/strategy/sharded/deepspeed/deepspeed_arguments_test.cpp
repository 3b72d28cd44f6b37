// Keys of a DeepSpeed configuration: what is refused, what is not modelled, and what clips.
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::Contains;

namespace {

std::unique_ptr<Strategy> made(const std::string& key, const StrategyArguments::Value& value) {
  static const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  StrategyArguments arguments;
  arguments.set("config.zero_optimization.stage", int64_t{2});
  arguments.set("config." + key, value);
  return deepspeed().make(plan, arguments);
}

}  // namespace

TEST_CASE("a wrong key or value of a DeepSpeed configuration is refused with what is wrong") {
  CHECK_THROWS_WITH(made("zero_optimisation.stage", int64_t{2}),
                    Contains("no configuration key `zero_optimisation.stage`"));
  CHECK_THROWS_WITH(made("fp16", true), Contains("`fp16`") && Contains("keys of its own"));
  CHECK_THROWS_WITH(made("zero_optimization.reduce_bucket_size", 1e99), Contains("at most 1e+18"));
  CHECK_THROWS_WITH(made("zero_optimization.reduce_bucket_size", int64_t{0}),
                    Contains("at least 1"));
}

TEST_CASE("accumulation in a DeepSpeed configuration is refused, as Lightning refuses it") {
  CHECK_THROWS_WITH(made("gradient_accumulation_steps", int64_t{4}),
                    Contains("accumulate_grad_batches"));
}

TEST_CASE("what DeepSpeed has and is not modelled is refused as such, unless it asks for nothing") {
  const std::string key = "zero_optimization.zero_quantized_weights";
  CHECK_THROWS_AS(made(key, true), UnmodelledArgument);
  CHECK_NOTHROW(made(key, false));
}

TEST_CASE("a DeepSpeed configuration clips by norm where it says so") {
  const GradientClipping clipping = made("gradient_clipping", 0.5)->configured_clipping().value();
  CHECK(clipping.algorithm == GradientClipping::Algorithm::norm);
  CHECK(clipping.limit == 0.5);
  CHECK(made("gradient_clipping", 0.0)->configured_clipping()->algorithm ==
        GradientClipping::Algorithm::none);
}
