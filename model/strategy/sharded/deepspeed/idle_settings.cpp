#include "model/strategy/sharded/deepspeed/idle_settings.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "model/strategy/sharded/deepspeed/deepspeed_argument_rows.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_configuration.hpp"

namespace lockstep {

namespace {

/// When a setting is read.
enum class Needs : uint8_t {
  fp16,
  fp16_of_zero,         ///< fp16 at stages 1 to 3
  sums_as_they_are,     ///< the engine divides gradients as it is asked to
  stages_with_buckets,  ///< 1 to 3
  partitions,           ///< stages 1 and 2
  stage_3,
  drive,
  drive_of_optimizer,
  drive_of_parameters,
};

struct Setting {
  std::string_view argument;  ///< of DeepSpeedStrategy; empty: it has none
  std::string_view key;       ///< of `config`
  double by_default;          ///< of DeepSpeed, for the key; false is 0
  Needs needs;
};

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr auto settings = std::to_array<Setting>({
    {"loss_scale", "fp16.loss_scale", 0, Needs::fp16},
    {"initial_scale_power", "fp16.initial_scale_power", 16, Needs::fp16},
    {"loss_scale_window", "fp16.loss_scale_window", 1000, Needs::fp16},
    {"hysteresis", "fp16.hysteresis", 2, Needs::fp16_of_zero},
    {"min_loss_scale", "fp16.min_loss_scale", 1, Needs::fp16},
    {"", "fp16.consecutive_hysteresis", 0, Needs::fp16_of_zero},
    {"", "gradient_predivide_factor", 1, Needs::sums_as_they_are},
    {"", "prescale_gradients", 0, Needs::sums_as_they_are},
    {"reduce_bucket_size", "zero_optimization.reduce_bucket_size", 5e8, Needs::stages_with_buckets},
    {"contiguous_gradients", "zero_optimization.contiguous_gradients", 1,
     Needs::stages_with_buckets},
    {"overlap_comm", "zero_optimization.overlap_comm", none, Needs::stages_with_buckets},
    {"reduce_scatter", "zero_optimization.reduce_scatter", 1, Needs::stages_with_buckets},
    {"", "zero_optimization.use_multi_rank_bucket_allreduce", 1, Needs::partitions},
    {"", "zero_optimization.round_robin_gradients", 0, Needs::partitions},
    {"sub_group_size", "zero_optimization.sub_group_size", 1e9, Needs::stage_3},
    {"", "zero_optimization.stage3_prefetch_bucket_size", 5e7, Needs::stage_3},
    {"", "zero_optimization.stage3_param_persistence_threshold", 1e5, Needs::stage_3},
    {"", "zero_optimization.stage3_model_persistence_threshold", none, Needs::stage_3},
    {"", "zero_optimization.stage3_max_live_parameters", 1e9, Needs::stage_3},
    {"", "zero_optimization.stage3_max_reuse_distance", 1e9, Needs::stage_3},
    {"", "zero_optimization.zero_hpz_partition_size", 1, Needs::stage_3},
    {"block_size", "aio.block_size", 1048576, Needs::drive},
    {"", "aio.intra_op_parallelism", 1, Needs::drive},
    {"optimizer_buffer_count", "zero_optimization.offload_optimizer.buffer_count", 4,
     Needs::drive_of_optimizer},
    {"", "zero_optimization.offload_optimizer.pipeline_read", 0, Needs::drive_of_optimizer},
    {"", "zero_optimization.offload_optimizer.pipeline_write", 0, Needs::drive_of_optimizer},
    {"params_buffer_count", "zero_optimization.offload_param.buffer_count", 5,
     Needs::drive_of_parameters},
    {"params_buffer_size", "zero_optimization.offload_param.buffer_size", 1e8,
     Needs::drive_of_parameters},
    {"max_in_cpu", "zero_optimization.offload_param.max_in_cpu", 1e9, Needs::drive_of_parameters},
});

/// Empty: it is read.
std::string_view why_not_read(Needs needs, const TrainingPlan& plan,
                              const DeepSpeedOptions& options) {
  const bool offloads = options.stage == 3;  // further than to host memory
  const bool optimizer = offloads && options.drive.optimizer;
  const bool parameters = offloads && options.drive.parameters;
  switch (needs) {
    case Needs::fp16:
      return plan.activation_dtype == DType::fp16 ? "" : "precision 16 alone scales the loss";
    case Needs::fp16_of_zero:
      return plan.activation_dtype != DType::fp16 ? "precision 16 alone scales the loss"
             : options.stage == 0                 ? "stage 0 halves the scale at each overflow"
                                                  : "";
    case Needs::sums_as_they_are:
      return options.stage == 0 || (!options.reduce_scatter && options.contiguous_gradients)
                 ? ""
                 : "ZeRO divides gradients before their sum, unless reduce_scatter is false";
    case Needs::stages_with_buckets:
      return options.stage > 0 ? "" : "stage 0 reduces gradients after the backward, as it is";
    case Needs::partitions:
      return options.stage == 1 || options.stage == 2 ? "" : "stages 1 and 2 alone read it";
    case Needs::stage_3: return options.stage == 3 ? "" : "stage 3 alone reads it";
    case Needs::drive: return optimizer || parameters ? "" : "nothing goes on to a drive (nvme)";
    case Needs::drive_of_optimizer:
      return optimizer ? "" : "the optimizer does not go on to a drive (nvme)";
    case Needs::drive_of_parameters:
      return parameters ? "" : "parameters do not go on to a drive (nvme)";
  }
  return "";
}

std::optional<double> number_of(const StrategyArguments::Value& value) {
  if (const bool* truth = std::get_if<bool>(&value)) {
    return *truth ? 1.0 : 0.0;
  }
  if (const int64_t* whole = std::get_if<int64_t>(&value)) {
    return static_cast<double>(*whole);
  }
  const double* number = std::get_if<double>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

// A key that is written with its default, or left to Lightning, asks for nothing.
bool says_something(const StrategyArguments::Value& value, double by_default) {
  const std::optional<double> number = number_of(value);
  return number && *number != by_default;
}

// 0 is 0.0.
bool is_asked_of_class(const StrategyArguments& arguments, const Setting& setting) {
  const StrategyArgument* row =
      setting.argument.empty() ? nullptr : find_argument(deepspeed_arguments(), setting.argument);
  const StrategyArguments::Value* value =
      row == nullptr ? nullptr : arguments.find(std::string(setting.argument));
  if (value == nullptr) {
    return false;
  }
  const std::optional<StrategyArguments::Value> by_default = default_of(*row);
  const std::optional<double> number = number_of(*value);
  return by_default && number ? number != number_of(*by_default) : *value != by_default;
}

// Lightning makes the group "fp16" of its own arguments where the configuration has none.
std::string name_asked(const StrategyArguments& arguments, const Setting& setting,
                       bool is_configured) {
  const std::string key = "config." + std::string(setting.key);
  const StrategyArguments::Value* value = is_configured ? arguments.find(key) : nullptr;
  if (value != nullptr && says_something(*value, setting.by_default)) {
    return key;
  }
  const bool counts =
      !is_configured || setting.needs == Needs::fp16 || setting.needs == Needs::fp16_of_zero;
  return counts && is_asked_of_class(arguments, setting) ? std::string(setting.argument) : "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> idle_settings(const TrainingPlan& plan,
                                                               const StrategyArguments& arguments,
                                                               const DeepSpeedOptions& options) {
  std::vector<std::pair<std::string, std::string>> found;
  const bool is_configured = has_deepspeed_configuration(arguments);
  for (const Setting& setting : settings) {
    const std::string_view why = why_not_read(setting.needs, plan, options);
    std::string name = why.empty() ? "" : name_asked(arguments, setting, is_configured);
    if (!name.empty()) {
      const std::string shown = name.substr(name.rfind('.') + 1);
      found.emplace_back(std::move(name), fmt::format("`{}` has no effect: {}", shown, why));
    }
  }
  return found;
}

}  // namespace lockstep
