// Units with flat parameters that are partly frozen, and how policies may be written.
#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace fsdp_policies_test {

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

// Two layers in a Sequential, of which the first is frozen, and one behind it.
Network partly_frozen() {
  LayerDescription frozen = linear(4, 8);
  frozen.arguments.push_back({"trainable", false});
  NetworkDescription description;
  description.name = "partly frozen";
  description.input = {4};
  description.layers = {{.kind = "Sequential", .layers = {frozen, linear(8, 8)}}, linear(8, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return std::move(built.network);
}

std::string refusal_of(const Network& network, const StrategyArguments& arguments,
                       bool takes_partly_frozen_units = true) {
  TrainingPlan plan;
  plan.network = &network;
  plan.takes_partly_frozen_units = takes_partly_frozen_units;
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
  // torch 2.0.1, flat_param.py, _init_flat_param: it compares requires_grad whatever
  // use_orig_params says (allowed by pytorch pull request 98221, in 2.1).
  for (const bool original : {false, true}) {
    CHECK(refusal_of(network, with("use_orig_params", original), false)
              .starts_with("ValueError: `FlatParameter` requires uniform `requires_grad`"));
  }
  CHECK(refusal_of(network, with("use_orig_params", true)).empty());
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

TEST_CASE("policies and classes are written as objects of scenarios are") {
  using Classes = std::vector<std::string>;
  const std::string policy = "auto_wrap_policy";
  // wrap.py, ModuleWrapPolicy: isinstance of any of them.
  for (const Classes& given :
       {Classes{"Linear"}, Classes{"[Linear, ReLU]"}, Classes{"[Linear, Conv2d]"}}) {
    CHECK_NOTHROW(make(with(policy + ".ModuleWrapPolicy", given)));
  }
  CHECK_THROWS_AS(make(with(policy + ".ModuleWrapPolicy", Classes{"[Conv1d, Conv2d]"})),
                  ArgumentProblem);
  CHECK_NOTHROW(make(with(policy + ".transformer_auto_wrap_policy", Classes{"Linear"})));
  CHECK_NOTHROW(make(with(policy, Classes{"torch.nn.Linear"})));
  CHECK_NOTHROW(make(with("ignored_states", Classes{"torch.nn.Linear"})));
  CHECK_NOTHROW(make(with(policy + ".size_based_auto_wrap_policy", int64_t{100})));
  CHECK_NOTHROW(make(with(policy + ".size_based_auto_wrap_policy", Classes{"100"})));
  CHECK_NOTHROW(make(with(policy + ".size_based_auto_wrap_policy", Classes{})));
  CHECK_THROWS_AS(make(with(policy + ".size_based_auto_wrap_policy", std::string("many"))),
                  ArgumentProblem);
  StrategyArguments by_path =
      with(policy + ".class_path", std::string("torch.distributed.fsdp.wrap.ModuleWrapPolicy"));
  by_path.set(policy + ".init_args.module_classes", Classes{"torch.nn.Linear"});
  CHECK_NOTHROW(make(by_path));
  by_path.set(policy + ".init_args.module_class", Classes{"Linear"});
  CHECK_THROWS_AS(make(by_path), ArgumentProblem);
  StrategyArguments precision =
      with("mixed_precision.class_path", std::string("torch.distributed.fsdp.MixedPrecision"));
  precision.set("mixed_precision.init_args.param_dtype", std::string("torch.bfloat16"));
  CHECK_NOTHROW(make(precision));
  const auto classes_of = fully_sharded_data_parallel().checkpointed_classes;
  CHECK(classes_of(with("activation_checkpointing_policy.ModuleWrapPolicy",
                        Classes{"[torch.nn.Linear]"})) == Classes{"Linear"});
}

// torch/distributed/fsdp/wrap.py has these beside those that are modelled.
TEST_CASE("other policies of torch are refused by name") {
  const Network network = partly_frozen();
  StrategyArguments always;
  always.set("auto_wrap_policy", std::vector<std::string>{"always_wrap_policy"});
  StrategyArguments lambda;
  lambda.set("auto_wrap_policy.lambda_auto_wrap_policy.lambda_fn", std::string("f"));
  for (const StrategyArguments& arguments : {always, lambda}) {
    TrainingPlan plan;
    plan.network = &network;
    CHECK_THROWS_AS(fully_sharded_data_parallel().make(plan, arguments), UnmodelledArgument);
  }
}

}  // namespace fsdp_policies_test
