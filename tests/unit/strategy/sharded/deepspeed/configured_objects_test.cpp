// The sections `optimizer` and `scheduler` of a DeepSpeed configuration, by engine.py of 0.16.4.
#include "model/strategy/sharded/deepspeed/configured_objects.hpp"

#include <catch2/catch.hpp>
#include <tuple>

using namespace lockstep;

namespace configured_objects_test {
using Catch::Matchers::Contains;

namespace {

using Given = std::vector<std::pair<std::string, StrategyArguments::Value>>;

StrategyArguments configuration(const Given& given) {
  StrategyArguments arguments;
  for (const auto& [name, value] : given) {
    arguments.set("config." + name, value);
  }
  return arguments;
}

StrategyArguments optimizer(const std::string& type, Given more = {}) {
  more.emplace_back("optimizer.type", type);
  return configuration(more);
}

bool implied(const ConfiguredObject& object, const std::string& name) {
  for (const auto& [each, value] : object.switches) {
    if (each == name) {
      return value;
    }
  }
  FAIL(name + " is not implied");
  return false;
}

}  // namespace

// _configure_basic_optimizer: names in any case, and `adam_w_mode` true where nothing says no.
TEST_CASE("Adam of a DeepSpeed configuration is FusedAdam that decouples decay") {
  const ConfiguredObject adam = *deepspeed_objects(optimizer("Adam")).optimizer;
  CHECK(adam.class_name == "FusedAdam");
  CHECK(adam.argument == "config.optimizer");
  CHECK(implied(adam, "adam_w_mode"));
  const Given coupled = {{"optimizer.params.adam_w_mode", false}, {"optimizer.params.lr", 0.01}};
  const ConfiguredObject plain = *deepspeed_objects(optimizer("ADAM", coupled)).optimizer;
  CHECK_FALSE(implied(plain, "adam_w_mode"));
  REQUIRE(plain.arguments.size() == 1);
  CHECK(plain.arguments[0] ==
        std::pair<std::string, std::string>("lr", "config.optimizer.params.lr"));
  CHECK(implied(*deepspeed_objects(optimizer("adamw", coupled)).optimizer, "adam_w_mode"));
}

TEST_CASE("an offloaded Adam of a DeepSpeed configuration is DeepSpeedCPUAdam, or torch's") {
  const Given offloaded = {{"zero_optimization.offload_optimizer.device", std::string("cpu")},
                           {"optimizer.params.adam_w_mode", false}};
  const ConfiguredObject adam = *deepspeed_objects(optimizer("Adam", offloaded)).optimizer;
  CHECK(adam.class_name == "DeepSpeedCPUAdam");
  CHECK_FALSE(implied(adam, "adamw_mode"));
  const Given of_torch = {{"optimizer.params.torch_adam", true},
                          {"optimizer.params.adam_w_mode", false}};
  CHECK(deepspeed_objects(optimizer("Adam", of_torch)).optimizer->class_name == "Adam");
  CHECK(deepspeed_objects(optimizer("AdamW", of_torch)).optimizer->class_name == "AdamW");
}

TEST_CASE("what the engine raises for an optimizer of its configuration is refused") {
  const std::vector<std::tuple<StrategyArguments, std::string, std::string>> refused = {
      {optimizer("Adam", {{"optimizer.params.lr", std::string("auto")}}),
       "config.optimizer.params.lr", "does not fill in"},
      {optimizer("Adam", {{"optimizer.params.momentum", 0.9}}), "config.optimizer.params.momentum",
       "unexpected keyword argument 'momentum'"},
      {optimizer("Adam", {{"optimizer.params.max_grad_norm", 1.0}}),
       "config.optimizer.params.max_grad_norm", "gradient_clipping"},
      {optimizer("Adam", {{"optimizer.params.amsgrad", true}}), "config.optimizer.params.amsgrad",
       "AMSGrad"},
      {optimizer("sgd"), "config.optimizer.type", "sgd is not a supported DeepSpeed"},
      {optimizer("SGD", {{"zero_optimization.stage", int64_t{1}}}), "config.optimizer.type",
       "untested ZeRO Optimizer"},
      {optimizer("OneBitAdam", {{"zero_optimization.stage", int64_t{1}}}), "config.optimizer.type",
       "not compatible with ZeRO"},
      {optimizer("Adam", {{"optimizer.params.lr", std::monostate()}}), "config.optimizer.params.lr",
       "is null"},
      {configuration({{"optimizer.params.lr", 0.1}}), "config.optimizer",
       "must provide optimizer during init"},
      {configuration({{"optimizer.params.lr", 0.1}, {"zero_optimization.stage", int64_t{2}}}),
       "config.optimizer", "zero stage 2 requires an optimizer"}};
  for (const auto& [arguments, name, why] : refused) {
    INFO(why);
    try {
      deepspeed_objects(arguments);
      FAIL("it must be refused");
    } catch (const RefusedArgument& error) {
      CHECK(error.argument() == name);
      CHECK_THAT(error.what(), Contains(why));
    }
  }
  CHECK_NOTHROW(deepspeed_objects(optimizer(
      "SGD", {{"zero_optimization.stage", int64_t{1}}, {"zero_allow_untested_optimizer", true}})));
  CHECK_NOTHROW(deepspeed_objects(optimizer("SGD")));  // stage 0 asks nobody
}

// Python's ** asks for a mapping.
TEST_CASE("`params` of a DeepSpeed configuration that is a list or a text is an error") {
  for (const StrategyArguments::Value& value :
       {StrategyArguments::Value(std::vector<std::string>{"1"}),
        StrategyArguments::Value(std::string("fast"))}) {
    CHECK_THROWS_AS(deepspeed_objects(optimizer("Adam", {{"optimizer.params", value}})),
                    ArgumentProblem);
  }
  CHECK_NOTHROW(deepspeed_objects(optimizer("Adam", {{"optimizer.params", std::monostate()}})));
}

// ZERO_SUPPORTED_OPTIMIZERS holds Lion and Adagrad; other classes of torch must be allowed.
TEST_CASE("Lion, Adagrad and classes of torch.optim may be in a DeepSpeed configuration") {
  const Given with_zero = {{"zero_optimization.stage", int64_t{2}}};
  const Given offloaded = {{"zero_optimization.stage", int64_t{2}},
                           {"zero_optimization.offload_optimizer.device", std::string("cpu")}};
  CHECK(deepspeed_objects(optimizer("Lion", with_zero)).optimizer->class_name == "FusedLion");
  CHECK(deepspeed_objects(optimizer("lion", offloaded)).optimizer->class_name ==
        "DeepSpeedCPULion");
  CHECK(deepspeed_objects(optimizer("Adagrad", with_zero)).optimizer->class_name == "Adagrad");
  CHECK(deepspeed_objects(optimizer("Adagrad", offloaded)).optimizer->class_name ==
        "DeepSpeedCPUAdagrad");
  CHECK_THROWS_WITH(deepspeed_objects(optimizer("RMSprop", with_zero)),
                    Contains("untested ZeRO Optimizer"));
  const Given allowed = {{"zero_optimization.stage", int64_t{2}},
                         {"zero_allow_untested_optimizer", true},
                         {"optimizer.params.alpha", 0.9}};
  CHECK(deepspeed_objects(optimizer("RMSprop", allowed)).optimizer->class_name == "RMSprop");
  CHECK_THROWS_WITH(deepspeed_objects(optimizer("Lamb", with_zero)),
                    Contains("untested ZeRO Optimizer"));
  const Given lamb = {{"zero_optimization.stage", int64_t{2}},
                      {"zero_allow_untested_optimizer", true}};
  CHECK_THROWS_WITH(deepspeed_objects(optimizer("Lamb", lamb)), Contains("one flat part"));
}

TEST_CASE("optimizers of a DeepSpeed configuration that are not modelled say so") {
  for (const char* type : {"Lamb", "OneBitAdam", "SparseAdam", "MuAdam"}) {
    INFO(type);
    CHECK_THROWS_AS(deepspeed_objects(optimizer(type)), UnmodelledArgument);
  }
  const Given amsgrad = {{"zero_optimization.offload_optimizer.device", std::string("cpu")},
                         {"optimizer.params.amsgrad", true}};
  CHECK_THROWS_AS(deepspeed_objects(optimizer("Adam", amsgrad)), UnmodelledArgument);
}

TEST_CASE("Adam of a DeepSpeed configuration hands bias_correction on") {
  const Given given = {{"optimizer.params.bias_correction", false}};
  const ConfiguredObject adam = *deepspeed_objects(optimizer("Adam", given)).optimizer;
  REQUIRE(adam.arguments.size() == 1);
  CHECK(adam.arguments[0] == std::pair<std::string, std::string>(
                                 "bias_correction", "config.optimizer.params.bias_correction"));
}

TEST_CASE("a DeepSpeed configuration makes DeepSpeed's schedulers, by their exact names") {
  const ConfiguredObjects objects =
      deepspeed_objects(configuration({{"scheduler.type", std::string("WarmupLR")},
                                       {"scheduler.params.warmup_num_steps", int64_t{5}}}));
  CHECK_FALSE(objects.optimizer);
  CHECK(objects.scheduler->class_name == "WarmupLR");
  const auto refusal = [](const Given& given) {
    try {
      deepspeed_objects(configuration(given));
    } catch (const RefusedArgument& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  CHECK_THAT(refusal({{"scheduler.type", std::string("WarmupDecayLR")},
                      {"scheduler.params.warmup_max_lr", 0.1}}),
             Contains("missing a required argument: 'total_num_steps'"));
  CHECK_THAT(refusal({{"scheduler.type", std::string("WarmupLR")}}), Contains("no `params`"));
  CHECK_THAT(refusal({{"scheduler.type", std::string("warmupLR")},
                      {"scheduler.params.warmup_max_lr", 0.1}}),
             Contains("does not recognize LR scheduler"));
  CHECK_THAT(refusal({{"scheduler.type", std::string("WarmupLR")},
                      {"scheduler.params.warmup_num_steps", std::monostate()}}),
             Contains("is null"));
  CHECK(refusal({{"scheduler.type", std::string("OneCycle")},
                 {"scheduler.params.cycle_min_lr", 0.1},
                 {"scheduler.params.cycle_max_lr", 0.2},
                 {"scheduler.params.cycle_second_step_size", std::monostate()}}) == "not refused");
  CHECK(has_unnamed_scheduler(configuration({{"scheduler.params.warmup_max_lr", 0.1}})));
  CHECK_THROWS_AS(
      deepspeed_objects(configuration({{"scheduler.type", std::string("ChainedScheduler")},
                                       {"scheduler.params.schedulers", std::string("x")}})),
      UnmodelledArgument);
  // lr_scheduler.py of torch asks whether what it is given is an Optimizer.
  CHECK_THAT(refusal({{"scheduler.type", std::string("StepLR")},
                      {"scheduler.params.step_size", int64_t{2}},
                      {"zero_optimization.stage", int64_t{2}}}),
             Contains("is not an Optimizer"));
}

}  // namespace configured_objects_test
