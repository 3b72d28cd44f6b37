// What DeepSpeed's engine says of the optimizer that a module gives it, by release.
#include "model/strategy/sharded/deepspeed/optimizer_checks.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace optimizer_checks_test {
using Catch::Matchers::Contains;

namespace {

OptimizerPlan adamw(bool is_on_host) {
  return {{.kind = OptimizerKind::adamw, .lr = 1e-3, .is_on_host = is_on_host}};
}
OptimizerPlan lion(bool is_fused) {
  return {{.kind = OptimizerKind::lion, .lr = 1e-3, .is_fused = is_fused}};
}
OptimizerPlan adagrad() { return {{.kind = OptimizerKind::adagrad, .lr = 1e-3}}; }

struct Given {
  OptimizerPlan optimizer;
  Version deepspeed{0, 19, 8};
  bool names_optimizer = true;
  bool fits = true;
};

std::unique_ptr<Strategy> made(const Given& given, const StrategyArguments& arguments) {
  static const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.optimizers = {given.optimizer};
  plan.deepspeed = given.deepspeed;
  plan.names_optimizer = given.names_optimizer;
  plan.is_fitted = given.fits;
  return deepspeed().make(plan, arguments);
}

StrategyArguments configured(int64_t stage, const std::string& device) {
  StrategyArguments arguments;
  arguments.set("config.zero_optimization.stage", stage);
  arguments.set("config.zero_optimization.offload_optimizer.device", device);
  return arguments;
}

StrategyArguments by_class() {
  StrategyArguments arguments;
  arguments.set("offload_optimizer", true);
  return arguments;
}

}  // namespace

// DeepSpeed 0.16.4 to 0.19.8, runtime/engine.py, _configure_optimizer: zero_use_cpu_optimizer()
// asks for the device alone, not for the stage.
TEST_CASE("an optimizer of torch is refused where DeepSpeed offloads, at any stage") {
  for (const int64_t stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    CHECK_THROWS_WITH(made({adamw(false)}, configured(stage, "cpu")),
                      Contains("ZeRORuntimeException") && Contains("(AdamW)"));
    CHECK_NOTHROW(made({adamw(true)}, configured(stage, "cpu")));
    CHECK_NOTHROW(made({adamw(false)}, configured(stage, "none")));
  }
  CHECK_THROWS_AS(made({adamw(false)}, configured(3, "nvme")), RefusedArgument);
  CHECK_THROWS_AS(made({adamw(false)}, by_class()), RefusedArgument);
  CHECK_NOTHROW(made({adamw(true)}, by_class()));
}

TEST_CASE("the refusal of an optimizer names what offloads, and the key that takes it") {
  const auto argument_of = [](const StrategyArguments& arguments) -> std::string {
    try {
      made({adamw(false)}, arguments);
    } catch (const RefusedArgument& refused) {
      CHECK_THAT(refused.remedy(),
                 Contains("DeepSpeedCPUAdam") && Contains("zero_force_ds_cpu_optimizer: false"));
      return refused.argument();
    }
    return "it was taken";
  };
  CHECK(argument_of(configured(2, "cpu")) == "config.zero_optimization.offload_optimizer.device");
  CHECK(argument_of(by_class()) == "offload_optimizer");
  StrategyArguments former;
  former.set("config.zero_optimization.stage", int64_t{2});
  former.set("config.zero_optimization.cpu_offload", true);
  CHECK(argument_of(former) == "config.zero_optimization.cpu_offload");
  StrategyArguments told = configured(2, "cpu");
  told.set("config.zero_force_ds_cpu_optimizer", false);
  CHECK_NOTHROW(made({adamw(false)}, told));
}

// 0.8.2 has no zero_force_ds_cpu_optimizer, 0.8.3 has (runtime/constants.py). Lightning hands
// nothing that offloads over where `zero_optimization` is false (_create_default_config).
TEST_CASE("releases, and trainings without an optimizer of their own, that are not refused") {
  CHECK_NOTHROW(made({adamw(false), {0, 8, 2}}, configured(2, "cpu")));
  CHECK_THROWS_AS(made({adamw(false), {0, 8, 3}}, configured(2, "cpu")), RefusedArgument);
  CHECK_NOTHROW(made({adamw(false), {0, 19, 8}, false}, configured(2, "cpu")));
  CHECK_NOTHROW(made({adamw(false), {0, 19, 8}, true, false}, configured(2, "cpu")));
  StrategyArguments without_zero = by_class();
  without_zero.set("zero_optimization", false);
  CHECK_NOTHROW(made({adamw(false)}, without_zero));
  // What the configuration makes is no client's.
  StrategyArguments own = configured(2, "cpu");
  own.set("config.optimizer.type", std::string("Adagrad"));
  CHECK_NOTHROW(made({adagrad()}, own));
}

// The engine of 0.17.6 asks for DeepSpeedCPULion as well, that of 0.17.5 for DeepSpeedCPUAdam
// alone; none asks for DeepSpeedCPUAdagrad.
TEST_CASE("which classes may update what is offloaded depends on the release") {
  CHECK(may_update_offloaded("DeepSpeedCPULion", {0, 17, 6}));
  CHECK_FALSE(may_update_offloaded("DeepSpeedCPULion", {0, 17, 5}));
  CHECK(may_update_offloaded("DeepSpeedCPUAdam", {0, 8, 3}));
  CHECK_FALSE(may_update_offloaded("DeepSpeedCPUAdagrad", {0, 19, 8}));
  CHECK_FALSE(may_update_offloaded("FusedAdam", {0, 19, 8}));
  CHECK(may_update_offloaded("SGD", {0, 8, 2}));
}

// ZERO_SUPPORTED_OPTIMIZERS of runtime/zero/utils.py: 0.8.3 has Adam, AdamW, FusedAdam and
// DeepSpeedCPUAdam, 0.9.2 Adagrad too, 0.11.1 FusedLion and DeepSpeedCPULion too. Types are
// compared exactly, so that Lion of lion-pytorch is none of them.
TEST_CASE("which optimizers DeepSpeed has tested depends on the class and the release") {
  const StrategyArguments stage_2 = configured(2, "none");
  const auto is_taken = [&stage_2](const OptimizerPlan& optimizer, const Version& deepspeed) {
    try {
      made({optimizer, deepspeed}, stage_2);
    } catch (const RefusedArgument& refused) {
      CHECK_THAT(refused.what(), Contains("untested ZeRO Optimizer"));
      return false;
    }
    return true;
  };
  CHECK_FALSE(is_taken(lion(false), {0, 19, 8}));
  CHECK(is_taken(lion(true), {0, 19, 8}));
  CHECK(is_taken(lion(true), {0, 11, 1}));
  CHECK_FALSE(is_taken(lion(true), {0, 10, 3}));
  CHECK(is_taken(adagrad(), {0, 9, 2}));
  CHECK_FALSE(is_taken(adagrad(), {0, 9, 0}));
  CHECK(is_taken(adamw(false), {0, 8, 3}));
  StrategyArguments stage_0 = configured(0, "none");
  CHECK_NOTHROW(made({lion(false)}, stage_0));
}

// runtime/config.py: DEEPSPEED_OPTIMIZERS of 0.19.6 has the 1-bit optimizers, that of 0.19.7 has
// not; before, without ZeRO, they train, which is not modelled.
TEST_CASE("1-bit optimizers are refused by the releases that have none") {
  StrategyArguments compressed;
  compressed.set("config.optimizer.type", std::string("OneBitAdam"));
  CHECK_THROWS_WITH(made({adamw(false), {0, 19, 7}}, compressed),
                    Contains("OneBitAdam is not a supported DeepSpeed Optimizer"));
  CHECK_THROWS_AS(made({adamw(false), {0, 19, 6}}, compressed), UnmodelledArgument);
}

}  // namespace optimizer_checks_test
