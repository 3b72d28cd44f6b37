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
                                                        {"state_dict_type", "local"},
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
  CHECK_THROWS_AS(
      make(with("activation_checkpointing_policy", std::string("size_based_auto_wrap_policy"))),
      UnmodelledArgument);
}

TEST_CASE("null is a value of backward_prefetch and the default of others") {
  CHECK_NOTHROW(make(with("backward_prefetch", std::monostate())));
  CHECK_NOTHROW(make(with("auto_wrap_policy", std::monostate())));
  CHECK_NOTHROW(make(with("forward_prefetch", true)));
  CHECK_NOTHROW(make(with("state_dict_type", std::string("sharded"))));
  CHECK_NOTHROW(make(with("auto_wrap_policy", std::vector<std::string>{"Linear"})));
}

TEST_CASE("classes whose forwards run again are those of either argument, and not of both") {
  using Classes = std::vector<std::string>;
  const auto classes_of = fully_sharded_data_parallel().checkpointed_classes;
  const Classes linear{"Linear"};
  CHECK(classes_of({}).empty());
  CHECK(classes_of(with("activation_checkpointing_policy", linear)) == linear);
  CHECK(classes_of(with("activation_checkpointing", std::string("Linear"))) == linear);
  CHECK(classes_of(with("activation_checkpointing_policy.ModuleWrapPolicy.module_classes",
                        linear)) == linear);
  CHECK(classes_of(with("activation_checkpointing", true)).empty());

  CHECK_NOTHROW(make(with("activation_checkpointing", linear)));
  CHECK_THROWS_AS(make(with("activation_checkpointing", true)), std::invalid_argument);
  CHECK_THROWS_AS(make(with("activation_checkpointing_policy", Classes{"Conv2d"})),
                  std::invalid_argument);
  StrategyArguments both = with("activation_checkpointing", linear);
  both.set("activation_checkpointing_policy", linear);
  CHECK_THROWS_AS(make(both), std::invalid_argument);
}

TEST_CASE("a device mesh needs a hybrid sharding strategy and as many ranks as the run has") {
  const auto mesh = [](std::vector<std::string> sizes, const char* sharding, int32_t ranks) {
    StrategyArguments arguments = with("device_mesh", std::move(sizes));
    arguments.set("sharding_strategy", std::string(sharding));
    const Network network = small_network();
    TrainingPlan plan;
    plan.network = &network;
    plan.world_size = ranks;
    fully_sharded_data_parallel().make(plan, arguments);
  };
  CHECK_NOTHROW(mesh({"2", "4"}, "HYBRID_SHARD", 8));
  CHECK_THROWS_AS(mesh({"2", "4"}, "HYBRID_SHARD", 4), std::invalid_argument);
  CHECK_THROWS_AS(mesh({"8"}, "HYBRID_SHARD", 8), std::invalid_argument);
  CHECK_THROWS_AS(mesh({"2", "4"}, "FULL_SHARD", 8), std::invalid_argument);
}
