// What FSDPStrategy takes, what it refuses, and what is not modelled.
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

StrategyArguments with(const std::string& name, const StrategyArguments::Value& value) {
  StrategyArguments arguments;
  arguments.set(name, value);
  return arguments;
}

void make(const StrategyArguments& arguments) {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  fully_sharded_data_parallel().make(plan, arguments);
}

}  // namespace

TEST_CASE("a wrong value or name of FSDPStrategy is refused") {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"sharding_strategy", "FULL"},
                                                        {"backward_prefetch", "PRE"},
                                                        {"mixed_precision.param_dtype", "int8"},
                                                        {"mixed_precision.param", "bf16"},
                                                        {"auto_wrap_policy", "Conv2d"},
                                                        {"auto_wrap_policy.by_size", "1"}}) {
    INFO(name << ": " << value);
    CHECK_THROWS_AS(make(with(name, value)), std::invalid_argument);
  }
  CHECK_THROWS_AS(
      make(with("auto_wrap_policy.size_based_auto_wrap_policy.min_num_params", int64_t{0})),
      std::invalid_argument);
}

TEST_CASE("what FSDPStrategy has and is not modelled is refused as such") {
  CHECK_THROWS_AS(make(with("mixed_precision.buffer_dtype", std::string("bf16"))),
                  UnmodelledArgument);
}

TEST_CASE("null is a value of backward_prefetch and the default of others") {
  CHECK_NOTHROW(make(with("backward_prefetch", std::monostate())));
  CHECK_NOTHROW(make(with("auto_wrap_policy", std::monostate())));
  CHECK_NOTHROW(make(with("forward_prefetch", true)));
  CHECK_NOTHROW(make(with("auto_wrap_policy", std::vector<std::string>{"Linear"})));
}
