#include "model/strategy/sharded/deepspeed/configuration_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/strategy/sharded/deepspeed/deepspeed_configuration.hpp"

namespace lockstep {

namespace {

const std::string in_config = "config.";

bool says_auto(const StrategyArguments& arguments, const std::string& key) {
  const StrategyArguments::Value* value = arguments.find(in_config + key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text != nullptr && *text == "auto";
}

// Text counts as true, "auto" too: Lightning fills in what is missing alone.
bool enables(const StrategyArguments& arguments, const std::string& type) {
  const std::string key = type + ".enabled";
  return says_auto(arguments, key) ||
         (arguments.has(in_config + key) && arguments.boolean(in_config + key, false));
}

bool has_group(const StrategyArguments& arguments, const std::string& group) {
  return std::ranges::any_of(arguments.all(), [&](const auto& each) {
    return each.first.starts_with(in_config + group + ".");
  });
}

// runtime/config.py, _configure_train_batch_size and _batch_assertion: Lightning fills in what is
// missing, and numbers are compared with numbers.
void check_batch_sizes(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const std::string whole = "train_batch_size";
  const std::string part = "train_micro_batch_size_per_gpu";
  for (const std::string& key : {whole, part}) {
    if (says_auto(arguments, key)) {
      throw RefusedArgument(
          fmt::format("TypeError: DeepSpeed compares `{}` with numbers, and it is \"auto\"", key),
          in_config + key, "leave it out: Lightning fills in what is missing, and nothing else");
    }
  }
  if (arguments.has(in_config + whole) && arguments.has(in_config + part) && plan.world_size > 0) {
    const int64_t all = arguments.integer(in_config + whole, 0);
    const int64_t one = arguments.integer(in_config + part, 0) * plan.world_size;
    if (one <= 0 || all % one != 0) {
      throw RefusedArgument(
          fmt::format(
              "AssertionError: Check batch related parameters. train_batch_size is not equal "
              "to micro_batch_per_gpu * gradient_acc_step * world_size: {} is no multiple of "
              "{} * {}",
              all, arguments.integer(in_config + part, 0), plan.world_size),
          in_config + whole, "leave train_batch_size out");
    }
  }
  if (says_auto(arguments, "gradient_clipping")) {
    throw RefusedArgument(
        "TypeError: the first step compares `gradient_clipping` with 0, and it is \"auto\"",
        in_config + "gradient_clipping", "leave it out: Lightning fills in gradient_clip_val");
  }
}

// runtime/config_utils.py, _process_deprecated_field.
void check_replaced_keys(const StrategyArguments& arguments) {
  const std::string zero = "zero_optimization.";
  for (const auto& [old_key, new_key] : {std::pair("cpu_offload", "offload_optimizer"),
                                         std::pair("cpu_offload_param", "offload_param")}) {
    if (arguments.has(in_config + zero + old_key) && has_group(arguments, zero + new_key)) {
      throw RefusedArgument(
          fmt::format("AssertionError: Cannot provide deprecated parameter '{}' and replacing "
                      "parameter '{}' together",
                      old_key, new_key),
          in_config + zero + old_key, fmt::format("leave `{}` out", old_key));
    }
  }
}

// zero/stage_1_and_2.py and stage3.py, __init__.
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

}  // namespace

void check_deepspeed_types(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const bool fp16 = enables(arguments, "fp16");
  const bool bf16 = enables(arguments, "bf16");
  if (fp16 && bf16) {
    throw RefusedArgument("bfloat16 and fp16 modes cannot be simultaneously enabled",
                          "config.bf16.enabled", "enable one of them");
  }
  if ((fp16 && plan.activation_dtype != DType::fp16) ||
      (bf16 && plan.activation_dtype != DType::bf16)) {
    throw ArgumentProblem(
        fmt::format("the DeepSpeed configuration enables {0}, but the Trainer's `precision` is of "
                    "{1}: the engine converts the model, and Lightning the batches",
                    fp16 ? "fp16" : "bf16", name_of(plan.activation_dtype)),
        fp16 ? "config.fp16.enabled" : "config.bf16.enabled",
        fmt::format("set precision: {}", fp16 ? "16-mixed" : "bf16-mixed"));
  }
  // _format_precision_config: Lightning enables a type whose section is not there.
  for (const auto& [type, dtype] :
       {std::pair("fp16", DType::fp16), std::pair("bf16", DType::bf16)}) {
    if (plan.activation_dtype == dtype && has_group(arguments, type) && !enables(arguments, type)) {
      throw RefusedArgument(
          fmt::format("RuntimeError: mat1 and mat2 must have the same dtype: `{0}` of the "
                      "configuration does not enable {0}, so that the engine leaves the model in "
                      "fp32, while Lightning casts batches",
                      type),
          fmt::format("config.{}.enabled", type),
          fmt::format("write {{\"{0}\": {{\"enabled\": true}}}}, or leave `{0}` out", type));
    }
  }
}

void check_deepspeed_assertions(const TrainingPlan& plan, const StrategyArguments& arguments,
                                const DeepSpeedOptions& options) {
  if (has_deepspeed_configuration(arguments)) {
    check_batch_sizes(plan, arguments);
    check_replaced_keys(arguments);
    check_prescaling(arguments, options);
  }
}

}  // namespace lockstep
