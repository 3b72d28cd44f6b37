#include "model/strategy/sharded/deepspeed/configuration_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/network/network.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_configuration.hpp"
#include "model/strategy/sharded/dtype_argument.hpp"

namespace lockstep {

namespace {

const std::string in_config = "config.";

bool says_auto(const StrategyArguments& arguments, const std::string& key) {
  const StrategyArguments::Value* value = arguments.find(in_config + key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text != nullptr && *text == "auto";
}

// Text counts as true, "auto" too: Lightning fills in what is missing alone. From 0.17.1 on
// (runtime/precision_config.py) "auto" is dropped, and a section does nothing by default.
bool enables(const TrainingPlan& plan, const StrategyArguments& arguments,
             const std::string& type) {
  constexpr Version first_that_drops{0, 17, 1};
  const std::string key = type + ".enabled";
  return says_auto(arguments, key)
             ? plan.deepspeed < first_that_drops
             : arguments.has(in_config + key) && arguments.boolean(in_config + key, false);
}

bool has_group(const StrategyArguments& arguments, const std::string& group) {
  return std::ranges::any_of(arguments.all(), [&](const auto& each) {
    return each.first == in_config + group || each.first.starts_with(in_config + group + ".");
  });
}

// runtime/config.py, _set_batch_related_parameters and _batch_assertion. Lightning fills in the
// size of its loader, and always `gradient_accumulation_steps`, so that all three are given.
void check_sum_of_batches(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const std::string whole = in_config + "train_batch_size";
  const std::string part = in_config + "train_micro_batch_size_per_gpu";
  const bool is_given = arguments.has(part);
  const int64_t one = is_given ? arguments.integer(part, 0) : plan.batch_size;
  if (is_given && one <= 0) {
    throw RefusedArgument(
        fmt::format("AssertionError: Micro batch size per gpu: {} has to be greater than 0", one),
        part, "leave it out: Lightning fills in the batch size of its loader");
  }
  const int64_t all = arguments.integer(whole, 0);
  const int64_t sum = one * plan.accumulated_batches * plan.world_size;
  if (!arguments.has(whole) || sum == 0 || all == sum) {
    return;
  }
  throw RefusedArgument(
      fmt::format("AssertionError: Check batch related parameters. train_batch_size is not equal "
                  "to micro_batch_per_gpu * gradient_acc_step * world_size {} != {} * {} * {}{}",
                  all, one, plan.accumulated_batches, plan.world_size,
                  is_given ? "" : " (Lightning fills in the batch size of the loader)"),
      whole, fmt::format("leave train_batch_size out, or write {}", sum));
}

void check_batch_sizes(const TrainingPlan& plan, const StrategyArguments& arguments) {
  for (const char* key : {"train_batch_size", "train_micro_batch_size_per_gpu"}) {
    if (says_auto(arguments, key)) {
      throw RefusedArgument(
          fmt::format("TypeError: DeepSpeed compares `{}` with numbers, and it is \"auto\"", key),
          in_config + key, "leave it out: Lightning fills in what is missing, and nothing else");
    }
  }
  check_sum_of_batches(plan, arguments);
  if (says_auto(arguments, "gradient_clipping")) {
    throw RefusedArgument(
        "TypeError: the first step compares `gradient_clipping` with 0, and it is \"auto\"",
        in_config + "gradient_clipping", "leave it out: Lightning fills in gradient_clip_val");
  }
}

// runtime/config_utils.py, _process_deprecated_field. What is "auto" is dropped before.
void check_replaced_keys(const StrategyArguments& arguments) {
  const std::string zero = "zero_optimization.";
  for (const auto& [old_key, new_key] : {std::pair("cpu_offload", "offload_optimizer"),
                                         std::pair("cpu_offload_param", "offload_param"),
                                         std::pair("stage3_gather_fp16_weights_on_model_save",
                                                   "stage3_gather_16bit_weights_on_model_save"),
                                         std::pair("stage3_gather_fp16_weights_on_model_save",
                                                   "gather_16bit_weights_on_model_save")}) {
    if (arguments.has(in_config + zero + old_key) && has_group(arguments, zero + new_key) &&
        !says_auto(arguments, zero + old_key) && !says_auto(arguments, zero + new_key)) {
      throw RefusedArgument(
          fmt::format("AssertionError: Cannot provide deprecated parameter '{}' and replacing "
                      "parameter '{}' together",
                      old_key, new_key),
          in_config + zero + old_key, fmt::format("leave `{}` out", old_key));
    }
  }
}

// runtime/engine.py, _configure_zero_optimizer.
void check_legacy_stage(const StrategyArguments& arguments, const DeepSpeedOptions& options) {
  const std::string key = in_config + "zero_optimization.legacy_stage1";
  if (options.stage > 0 && arguments.has(key) && arguments.boolean(key, false)) {
    throw RefusedArgument(
        "Exception: The deprecated version of ZeRO Stage 1 is not supported in deepspeed >= 0.5.9",
        key, "leave it out");
  }
}

// runtime/engine.py, get_data_types and _do_optimizer_sanity_check.
void check_accumulated_type(const TrainingPlan& plan, const StrategyArguments& arguments,
                            const DeepSpeedOptions& options) {
  const std::string key = in_config + "data_types.grad_accum_dtype";
  if (!arguments.has(key)) {
    return;
  }
  const DType accumulated = dtype_argument(arguments, key);
  if (accumulated == plan.activation_dtype) {
    return;
  }
  if (options.stage == 0) {
    throw RefusedArgument(fmt::format("NotImplementedError: unsupported mix of model_dtype={} and "
                                      "grad_accum_dtype={}",
                                      name_of(plan.activation_dtype), name_of(accumulated)),
                          key, "leave it out, or use ZeRO (zero_optimization: {stage: 1})");
  }
  throw UnmodelledArgument(
      fmt::format("gradients that add up in {} beside a model in {} are not modelled: "
                  "`grad_accum_dtype` is that of the model",
                  name_of(accumulated), name_of(plan.activation_dtype)),
      key, "leave it out");
}

// zero/stage_1_and_2.py and stage3.py, __init__; engine.py, allreduce_bucket.
void check_predivision(const DeepSpeedOptions& options) {
  const std::string key = in_config + "gradient_predivide_factor";
  const double factor = options.division.predivided;
  if (factor == 1) {
    return;
  }
  if (options.stage >= 2 && options.reduce_scatter) {
    throw RefusedArgument(
        fmt::format("AssertionError: gradient_predivide_factor != 1.0 is not yet supported with "
                    "ZeRO-{} with reduce scatter enabled",
                    options.stage),
        key, "leave it out, or set reduce_scatter: false");
  }
  if (options.stage == 3) {
    throw UnmodelledArgument("`gradient_predivide_factor` at stage 3 is not modelled", key);
  }
  const bool is_read = options.stage == 0 || !options.reduce_scatter;
  if (factor == 0 && is_read && !options.division.comes_before) {
    throw RefusedArgument("ZeroDivisionError: float division by zero", key, "leave it out");
  }
}

void check_prescaling(const StrategyArguments& arguments, const DeepSpeedOptions& options) {
  const std::string key = in_config + "prescale_gradients";
  if (options.stage >= 2 && options.reduce_scatter && arguments.has(key) &&
      arguments.boolean(key, false)) {
    throw RefusedArgument(
        "AssertionError: pre-scale gradients is not yet supported with ZeRO-2 with reduce scatter "
        "enabled",
        key, "leave it out, or set reduce_scatter: false");
  }
}

// strategies/deepspeed.py, _initialize_deepspeed_inference: of the configuration it hands over the
// types, and at stage 3 two keys that it takes to be there.
void check_evaluation(const StrategyArguments& arguments, const DeepSpeedOptions& options) {
  const std::string key = in_config + "zero_allow_untested_optimizer";
  if (options.stage == 3 && arguments.find(key) == nullptr) {
    throw RefusedArgument(
        "KeyError: 'zero_allow_untested_optimizer': without a fit Lightning reads it of a "
        "configuration of stage 3",
        in_config + "zero_optimization.stage", "add zero_allow_untested_optimizer: true");
  }
}

// _format_precision_config: Lightning enables a type whose section is not there. It casts batches
// of floating type to that of `precision`, and indices not at all.
void refuse_switched_off(const TrainingPlan& plan, const StrategyArguments& arguments,
                         const std::string& type) {
  const std::string key = in_config + type + ".enabled";
  const std::string argument = arguments.has(key) ? key : in_config + type;
  const std::string remedy =
      fmt::format("write {{\"{0}\": {{\"enabled\": true}}}}, or leave `{0}` out", type);
  if (plan.network != nullptr && plan.network->input_dtype == DType::int64) {
    throw UnmodelledArgument(
        fmt::format("`{0}` of the configuration does not enable {0}, so that the engine trains in "
                    "fp32 although `precision` says otherwise; precision: 32-true is modelled",
                    type),
        argument, remedy);
  }
  throw RefusedArgument(
      fmt::format("RuntimeError: mat1 and mat2 must have the same dtype: `{0}` of the "
                  "configuration does not enable {0}, so that the engine leaves the model in "
                  "fp32, while Lightning casts batches",
                  type),
      argument, remedy);
}

// The engine converts the model, whatever `precision` is; indices need no conversion, and auto_cast
// converts the batches of fp16.
void refuse_switched_on(const TrainingPlan& plan, const StrategyArguments& arguments,
                        const std::string& type) {
  const std::string argument = in_config + type + ".enabled";
  const std::string remedy = fmt::format("set precision: {}-mixed", type == "fp16" ? "16" : "bf16");
  const bool takes_indices = plan.network != nullptr && plan.network->input_dtype == DType::int64;
  const bool casts = type == "fp16" && arguments.boolean(in_config + "fp16.auto_cast", false);
  if (takes_indices || casts) {
    throw UnmodelledArgument(
        fmt::format("the configuration enables {}, which the engine trains in although "
                    "`precision` says {}; with the same `precision` it is modelled",
                    type, name_of(plan.activation_dtype)),
        argument, remedy);
  }
  throw RefusedArgument(
      fmt::format("RuntimeError: mat1 and mat2 must have the same dtype: the configuration enables "
                  "{}, to which the engine converts the model, while batches are {} by "
                  "`precision`",
                  type, name_of(plan.activation_dtype)),
      argument, remedy);
}

}  // namespace

void check_deepspeed_types(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const bool fp16 = enables(plan, arguments, "fp16");
  const bool bf16 = enables(plan, arguments, "bf16");
  if (fp16 && bf16) {
    throw RefusedArgument("bfloat16 and fp16 modes cannot be simultaneously enabled",
                          "config.bf16.enabled", "enable one of them");
  }
  if ((fp16 && plan.activation_dtype != DType::fp16) ||
      (bf16 && plan.activation_dtype != DType::bf16)) {
    refuse_switched_on(plan, arguments, fp16 ? "fp16" : "bf16");
  }
  for (const auto& [type, dtype] :
       {std::pair("fp16", DType::fp16), std::pair("bf16", DType::bf16)}) {
    if (plan.activation_dtype == dtype && has_group(arguments, type) &&
        !enables(plan, arguments, type)) {
      refuse_switched_off(plan, arguments, type);
    }
  }
}

void check_deepspeed_assertions(const TrainingPlan& plan, const StrategyArguments& arguments,
                                const DeepSpeedOptions& options) {
  if (!has_deepspeed_configuration(arguments)) {
    return;
  }
  if (!plan.is_fitted) {
    check_evaluation(arguments, options);
    return;
  }
  check_batch_sizes(plan, arguments);
  check_replaced_keys(arguments);
  check_prescaling(arguments, options);
  check_predivision(options);
  check_legacy_stage(arguments, options);
  check_accumulated_type(plan, arguments, options);
}

}  // namespace lockstep
