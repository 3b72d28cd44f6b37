// Units of which only a part is trained.
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace flat_parameters_test {

namespace {

StrategyArguments with(const std::string& name, const StrategyArguments::Value& value) {
  StrategyArguments arguments;
  arguments.set(name, value);
  return arguments;
}

// Two layers in a Sequential, of which the first is frozen, and one behind it.
Network partly_frozen() {
  LayerDescription frozen = linear(4, 8);
  frozen.arguments.emplace_back("trainable", "false");
  NetworkDescription description;
  description.name = "partly frozen";
  description.input = {4};
  description.layers = {{.kind = "Sequential", .layers = {frozen, linear(8, 8)}}, linear(8, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return std::move(built.network);
}

std::string refusal_of(const Network& network, const StrategyArguments& arguments) {
  TrainingPlan plan;
  plan.network = &network;
  try {
    fully_sharded_data_parallel().make(plan, arguments);
  } catch (const RefusedArgument& refused) {
    return refused.what();
  }
  return "";
}

}  // namespace

// Messages of torch 2.11.0 and of flat_param.py of 1.13.
TEST_CASE("a flat parameter is trained or frozen as a whole, unless the original ones are kept") {
  using Classes = std::vector<std::string>;
  const Network network = partly_frozen();
  CHECK(refusal_of(network, {}).empty());
  StrategyArguments flat = with("use_orig_params", false);
  CHECK(refusal_of(network, flat)
            .starts_with("ValueError: Must flatten tensors with uniform `requires_grad` when "
                         "`use_orig_params=False`"));
  StrategyArguments by_size = flat;
  by_size.set("auto_wrap_policy.size_based_auto_wrap_policy.min_num_params", int64_t{100});
  CHECK(refusal_of(network, by_size).find("Must flatten tensors") != std::string::npos);
  StrategyArguments older = flat;
  older.set("default_process_group", true);
  CHECK(refusal_of(network, older)
            .starts_with("ValueError: `FlatParameter` requires uniform `requires_grad`"));
  StrategyArguments sequential = flat;
  sequential.set("auto_wrap_policy", Classes{"Sequential"});
  CHECK(refusal_of(network, sequential)
            .find("FSDP does not support wrapping such modules when use_orig_params=False") !=
        std::string::npos);
  StrategyArguments linears = flat;
  linears.set("auto_wrap_policy", Classes{"Linear"});
  CHECK(refusal_of(network, linears).empty());
  StrategyArguments ignoring = flat;
  ignoring.set("ignored_states", Classes{network.layers.front().name});
  CHECK(refusal_of(network, ignoring).empty());
}

}  // namespace flat_parameters_test
