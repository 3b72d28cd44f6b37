// What DeepSpeed asserts of a configuration, by release. Sources: deepspeed/runtime/config.py,
// config_utils.py, precision_config.py and engine.py, and lightning/pytorch/strategies/deepspeed.py
// of Lightning 2.6.
#include "model/strategy/sharded/deepspeed/configuration_checks.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace configuration_checks_test {
using Catch::Matchers::Contains;

namespace {

using Given = std::vector<std::pair<std::string, StrategyArguments::Value>>;

// Four ranks with batches of 4.
TrainingPlan plan_of_four() {
  static const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.optimizers = {{{.kind = OptimizerKind::adamw, .lr = 1e-3}}};
  plan.world_size = 4;
  plan.batch_size = 4;
  return plan;
}

std::unique_ptr<Strategy> made(const TrainingPlan& plan, const Given& given) {
  StrategyArguments arguments;
  for (const auto& [key, value] : given) {
    arguments.set("config." + key, value);
  }
  return deepspeed().make(plan, arguments);
}

std::string refusal(const TrainingPlan& plan, const Given& given) {
  try {
    made(plan, given);
  } catch (const RefusedArgument& refused) {
    return refused.what();
  }
  return "";
}

const Given::value_type stage_2 = {"zero_optimization.stage", int64_t{2}};
const Given::value_type stage_3 = {"zero_optimization.stage", int64_t{3}};

}  // namespace

// config.py, _batch_assertion: train_batch == micro_batch * grad_acc * world_size. Lightning,
// _format_batch_size_and_grad_accum_config: grad_acc is always there, and micro_batch is that of
// the loader where the file has none. So 4 * 1 * 4 = 16, and 32 with two micro-batches.
TEST_CASE("the size of a batch of all ranks is what Lightning's sizes come to") {
  TrainingPlan plan = plan_of_four();
  const auto with_size = [&plan](int64_t size) {
    return refusal(plan, {stage_2, {"train_batch_size", size}});
  };
  CHECK(with_size(16).empty());
  CHECK_THAT(with_size(32), Contains("32 != 4 * 1 * 4"));
  plan.accumulated_batches = 2;
  CHECK(with_size(32).empty());
  CHECK_THAT(with_size(16), Contains("16 != 4 * 2 * 4"));
  // The file's own size of a micro-batch counts, whatever the loader's is.
  const Given::value_type of_8 = {"train_micro_batch_size_per_gpu", int64_t{8}};
  CHECK(refusal(plan, {stage_2, of_8}).empty());
  CHECK(refusal(plan, {stage_2, of_8, {"train_batch_size", int64_t{64}}}).empty());
  CHECK_THAT(refusal(plan, {stage_2, {"train_micro_batch_size_per_gpu", int64_t{0}}}),
             Contains("has to be greater than 0"));
  plan.batch_size = 0;  // ranks have different ones
  CHECK(with_size(1).empty());
}

// 0.17.0: get_fp16_enabled gives the text, which is true. 0.17.1: DeepSpeedConfigModel drops
// "auto", and `enabled` is false by default.
TEST_CASE("a type that is enabled by a text is enabled up to 0.17.0") {
  TrainingPlan plan = plan_of_four();
  const Given both = {
      stage_2, {"fp16.enabled", std::string("auto")}, {"bf16.enabled", std::string("auto")}};
  plan.deepspeed = {0, 17, 0};
  CHECK_THAT(refusal(plan, both), Contains("cannot be simultaneously enabled"));
  plan.deepspeed = {0, 17, 1};
  CHECK(refusal(plan, both).empty());
}

// _format_precision_config adds a section only where there is none, also where it is empty.
TEST_CASE("batches are cast to a type that the configuration does not enable, but for indices") {
  TrainingPlan plan = plan_of_four();
  plan.activation_dtype = DType::bf16;
  const Given off = {stage_2, {"bf16.enabled", false}};
  CHECK_THAT(refusal(plan, off), Contains("mat1 and mat2"));
  CHECK_THAT(refusal(plan, {stage_2, {"bf16", std::vector<std::string>()}}),
             Contains("mat1 and mat2"));
  CHECK(refusal(plan, {stage_2}).empty());
  Network of_indices = small_network();
  of_indices.input_dtype = DType::int64;
  plan.network = &of_indices;
  CHECK_THROWS_AS(made(plan, off), UnmodelledArgument);
}

// config.py of 0.19.7, _reject_removed_config_keys; 0.19.6 has none of it.
TEST_CASE("keys that DeepSpeed has removed are refused whatever they say") {
  TrainingPlan plan = plan_of_four();
  for (const char* key : {"amp.enabled", "elasticity.enabled", "curriculum_learning.enabled",
                          "graph_harvesting", "sparse_gradients", "eigenvalue.enabled",
                          "zero_optimization.mics_hierarchical_params_gather"}) {
    INFO(key);
    plan.deepspeed = {0, 19, 7};
    CHECK_THAT(refusal(plan, {stage_2, {key, false}}), Contains("0.19.7"));
    plan.deepspeed = {0, 19, 6};
    CHECK(refusal(plan, {stage_2, {key, false}}).empty());
  }
  plan.deepspeed = {0, 19, 7};
  CHECK(refusal(plan, {stage_2, {"flops_profiler.enabled", false}}).empty());
}

// pydantic's extra="forbid" with populate_by_name, tried with pydantic 2: the name that is not the
// alias is an extra input. config_utils.py drops "auto" before.
TEST_CASE("a field by both of its names is refused, and a key beside the one that replaced it") {
  const TrainingPlan plan = plan_of_four();
  const std::string zero = "zero_optimization.";
  const Given::value_type by_alias = {zero + "stage3_max_live_parameters", int64_t{10}};
  CHECK_THAT(refusal(plan, {stage_3, by_alias, {zero + "max_live_parameters", int64_t{10}}}),
             Contains("Extra inputs are not permitted"));
  CHECK(refusal(plan, {stage_3, by_alias, {zero + "max_live_parameters", std::string("auto")}})
            .empty());
  const Given::value_type former = {zero + "stage3_gather_fp16_weights_on_model_save", true};
  CHECK(refusal(plan, {stage_3, former}).empty());
  for (const char* today :
       {"stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save"}) {
    CHECK_THAT(refusal(plan, {stage_3, former, {zero + today, true}}),
               Contains("Cannot provide deprecated parameter"));
  }
}

// engine.py, _configure_zero_optimizer, which ZeRO alone comes to.
TEST_CASE("the former stage 1 is refused with ZeRO") {
  const TrainingPlan plan = plan_of_four();
  const Given::value_type legacy = {"zero_optimization.legacy_stage1", true};
  CHECK_THAT(refusal(plan, {stage_2, legacy}), Contains(">= 0.5.9"));
  CHECK(refusal(plan, {legacy}).empty());
}

// engine.py, get_data_types: the default is the model's own type; _do_optimizer_sanity_check
// raises NotImplementedError for another without ZeRO.
TEST_CASE("gradients add up in the type of the model") {
  TrainingPlan plan = plan_of_four();
  const auto sums_in = [](const char* dtype) {
    return Given::value_type("data_types.grad_accum_dtype", std::string(dtype));
  };
  CHECK(refusal(plan, {stage_2, sums_in("fp32")}).empty());
  CHECK_THAT(refusal(plan, {sums_in("bf16")}), Contains("unsupported mix"));
  CHECK_THROWS_AS(made(plan, {stage_2, sums_in("bf16")}), UnmodelledArgument);
  plan.activation_dtype = DType::bf16;
  CHECK(refusal(plan, {stage_2, sums_in("bf16")}).empty());
  CHECK_THROWS_AS(made(plan, {stage_2, sums_in("fp32")}), UnmodelledArgument);
}

// strategies/deepspeed.py: an empty map is a configuration beside which Lightning makes none, and
// deepspeed/runtime/zero/config.py has stage 0 by default.
TEST_CASE("an empty configuration is stage 0, as is an empty section of ZeRO") {
  const TrainingPlan plan = plan_of_four();
  StrategyArguments empty;
  empty.set("config", std::vector<std::string>());
  CHECK(deepspeed().make(plan, empty)->name() == "deepspeed");
  CHECK(made(plan, {{"zero_optimization", std::vector<std::string>()}})->name() == "deepspeed");
}

// strategies/deepspeed.py, _initialize_deepspeed_inference: the engine gets the types, a
// micro-batch of 1, and of stage 3 `zero_optimization` and `zero_allow_untested_optimizer`, which
// it takes to be there.
TEST_CASE("an engine that only evaluates is given few keys, and no optimizer") {
  TrainingPlan plan = plan_of_four();
  plan.is_fitted = false;
  CHECK(refusal(plan, {stage_2, {"train_batch_size", int64_t{999}}}).empty());
  CHECK(refusal(plan, {stage_2, {"amp.enabled", false}}).empty());
  CHECK(made(plan, {stage_2})->name() == "deepspeed");
  CHECK_THAT(refusal(plan, {stage_3}), Contains("KeyError: 'zero_allow_untested_optimizer'"));
  CHECK(refusal(plan, {stage_3, {"zero_allow_untested_optimizer", false}}).empty());
  plan.activation_dtype = DType::bf16;
  CHECK(made(plan, {stage_2})->name() == "deepspeed");
}

}  // namespace configuration_checks_test
