// DeepSpeed's own configuration, as Lightning hands it to the engine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/strategy/sharded/deepspeed/configuration_section.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_argument_rows.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_configuration.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_keys.hpp"
#include "model/strategy/sharded/dtype_argument.hpp"

namespace lockstep {

bool has_deepspeed_configuration(const StrategyArguments& arguments) {
  const StrategyArguments::Value* value = arguments.find("config");
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
  return (list != nullptr && list->empty()) ||
         std::ranges::any_of(arguments.all(),
                             [](const auto& each) { return each.first.starts_with("config."); });
}

int64_t argument_at_least(int64_t least, const std::string& name, int64_t value) {
  if (value < least) {
    throw ArgumentProblem(fmt::format("strategy argument {} must be at least {}", name, least),
                          name);
  }
  return value;
}

// Python computes 2**power with whole numbers, which torch then takes up to 64 bits: the first
// backward raises beyond (LossScaler::too_large).
LossScaler::Options deepspeed_loss_scale(const StrategyArguments& arguments,
                                         const std::string& prefix) {
  // DeepSpeed's own defaults (runtime/constants.py) are those of Lightning's arguments.
  const StrategyArguments none;
  const StrategyArgumentReader defaults(none, deepspeed_arguments());
  LossScaler::Options options;
  const auto name = [&prefix](const char* key) { return prefix + key; };
  options.loss_scale = arguments.number(name("loss_scale"), defaults.number("loss_scale"));
  if (!(options.loss_scale >= 0)) {
    throw ArgumentProblem(
        fmt::format("{} must be 0, for a dynamic one, or more", name("loss_scale")),
        name("loss_scale"));
  }
  const auto whole = [&](const char* key) {
    constexpr double bound = 1e9;  // numbers are often written as 1e3
    return static_cast<int64_t>(
        std::clamp(arguments.number(name(key), defaults.number(key)), -bound, bound));
  };
  options.initial_scale_power = whole("initial_scale_power");
  constexpr int64_t smallest = -1074;
  if (options.initial_scale_power < smallest) {
    throw ArgumentProblem(
        fmt::format("{} must be at least {}: a smaller power of 2 is no floating-point number",
                    name("initial_scale_power"), smallest),
        name("initial_scale_power"));
  }
  options.window = argument_at_least(1, name("loss_scale_window"), whole("loss_scale_window"));
  // With less the scale would never fall.
  options.hysteresis = argument_at_least(1, name("hysteresis"), whole("hysteresis"));
  options.min_loss_scale =
      arguments.number(name("min_loss_scale"), defaults.number("min_loss_scale"));
  return options;
}

namespace {

/// A configuration's keys, by their path behind "config.".
class Configuration {
 public:
  explicit Configuration(const StrategyArguments& arguments) : arguments_(arguments) {}

  static constexpr double largest = 1e18;  ///< of a size, far beyond any model

  // "auto" stands for the default: Lightning fills in sizes of batches itself.
  bool has(const std::string& key) const {
    const StrategyArguments::Value* value = arguments_.find("config." + key);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return arguments_.has("config." + key) && (text == nullptr || *text != "auto");
  }
  bool boolean(const std::string& key, bool otherwise) const {
    return has(key) ? arguments_.boolean("config." + key, otherwise) : otherwise;
  }
  int64_t integer(const std::string& key, int64_t otherwise, int64_t least = 0) const {
    // Sizes are often written as 5e8.
    if (!has(key)) {
      return otherwise;
    }
    const double given = arguments_.number("config." + key, 0);
    if (given != std::floor(given)) {
      throw ArgumentProblem(fmt::format("strategy argument config.{} must be a whole number", key),
                            "config." + key);
    }
    if (!(given <= largest)) {
      throw ArgumentProblem(
          fmt::format("strategy argument config.{} must be at most {:.0e}", key, largest),
          "config." + key);
    }
    return argument_at_least(least, "config." + key, static_cast<int64_t>(given));
  }
  double number(const std::string& key, double otherwise) const {
    return has(key) ? arguments_.number("config." + key, otherwise) : otherwise;
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    return has(key) ? arguments_.text("config." + key, otherwise) : otherwise;
  }

 private:
  const StrategyArguments& arguments_;
};

enum class Offload : uint8_t { none, host, drive };

Offload offload_of(const Configuration& configuration, const std::string& what) {
  const std::string group = "zero_optimization." + what;
  const std::string device = configuration.text(group + ".device", "none");
  if (device != "cpu" && device != "nvme" && device != "none") {
    throw ArgumentProblem(fmt::format("{}.device must be cpu, nvme or none", what),
                          fmt::format("config.{}.device", group));
  }
  if (device == "nvme" && !configuration.has(group + ".nvme_path")) {
    throw RefusedArgument(
        fmt::format("TypeError: {0}.nvme_path is None, and {0}.device nvme", what),
        fmt::format("config.{}.device", group), "give `nvme_path`, a folder on the local drive");
  }
  return device == "none" ? Offload::none : device == "cpu" ? Offload::host : Offload::drive;
}

void set_offload(const Configuration& configuration, DeepSpeedOptions& options) {
  const Offload optimizer = offload_of(configuration, "offload_optimizer");
  const Offload parameters = offload_of(configuration, "offload_param");
  options.offloads_optimizer = optimizer != Offload::none;
  options.offloads_parameters = parameters != Offload::none;
  DriveOptions& drive = options.drive;
  drive.optimizer = optimizer == Offload::drive;
  drive.parameters = parameters == Offload::drive;
  const std::string of_optimizer = "zero_optimization.offload_optimizer.";
  drive.optimizer_buffers =
      configuration.integer(of_optimizer + "buffer_count", drive.optimizer_buffers, 1);
  drive.pipeline_read = configuration.boolean(of_optimizer + "pipeline_read", false);
  drive.pipeline_write = configuration.boolean(of_optimizer + "pipeline_write", false);
  const std::string of_parameters = "zero_optimization.offload_param.";
  drive.parameter_buffers =
      configuration.integer(of_parameters + "buffer_count", drive.parameter_buffers);
  drive.parameter_buffer_elements =
      configuration.integer(of_parameters + "buffer_size", drive.parameter_buffer_elements);
  drive.parameters_in_host =
      configuration.integer(of_parameters + "max_in_cpu", drive.parameters_in_host);
  drive.block_bytes = configuration.integer("aio.block_size", drive.block_bytes, 1);
  drive.threads = configuration.integer("aio.intra_op_parallelism", drive.threads, 1);
}

// _format_precision_config: Lightning fills in what its own arguments say where there is no "fp16".
LossScaler::Options loss_scale_of(const StrategyArguments& arguments,
                                  const Configuration& configuration) {
  const bool has_group = std::ranges::any_of(
      arguments.all(), [](const auto& each) { return each.first.starts_with("config.fp16."); });
  if (!has_group) {
    return deepspeed_loss_scale(arguments, "");
  }
  StrategyArguments given;
  for (const auto& [name, value] : arguments.all()) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr || *text != "auto") {
      given.set(name, value);
    }
  }
  LossScaler::Options options = deepspeed_loss_scale(given, "config.fp16.");
  options.refills_hysteresis = configuration.boolean("fp16.consecutive_hysteresis", false);
  return options;
}

// runtime/config.py, get_checkpoint_tag_validation_mode. Warn and Fail differ in what follows from
// names that differ, which they do not here.
bool compares_tags(const Configuration& configuration) {
  const std::string key = "checkpoint.tag_validation";
  const std::string mode = in_lower_case(configuration.text(key, "warn"));
  if (mode != "warn" && mode != "fail" && mode != "ignore") {
    throw RefusedArgument(
        fmt::format("DeepSpeedConfigError: Checkpoint config contains invalid tag_validation "
                    "value of {}",
                    mode),
        "config." + key, "write Warn, Ignore or Fail");
  }
  return mode != "ignore";
}

}  // namespace

DeepSpeedOptions deepspeed_configuration(const StrategyArguments& given) {
  check_deepspeed_keys(given);
  const StrategyArguments arguments = with_keys_of_today(given);
  const Configuration configuration(arguments);
  const std::string zero = "zero_optimization.";
  DeepSpeedOptions options;
  options.stage = configuration.integer(zero + "stage", 0);
  options.contiguous_gradients = configuration.boolean(zero + "contiguous_gradients", true);
  options.overlap_comm = configuration.boolean(zero + "overlap_comm", options.stage == 3);
  options.reduce_scatter = configuration.boolean(zero + "reduce_scatter", true);
  options.use_multi_rank_bucket_allreduce =
      configuration.boolean(zero + "use_multi_rank_bucket_allreduce", true);
  options.round_robin_gradients = configuration.boolean(zero + "round_robin_gradients", false);
  options.ignores_unused = configuration.boolean(zero + "ignore_unused_parameters", true);
  options.reduce_bucket_size = configuration.integer(zero + "reduce_bucket_size", 500'000'000, 1);
  options.sub_group_size = configuration.integer(zero + "sub_group_size", 1'000'000'000, 1);
  options.prefetch_bucket_size =
      configuration.integer(zero + "stage3_prefetch_bucket_size", options.prefetch_bucket_size);
  options.param_persistence_threshold = configuration.integer(
      zero + "stage3_param_persistence_threshold", options.param_persistence_threshold);
  options.model_persistence_threshold = configuration.integer(
      zero + "stage3_model_persistence_threshold", options.model_persistence_threshold);
  options.max_live_parameters =
      configuration.integer(zero + "stage3_max_live_parameters", options.max_live_parameters);
  options.max_reuse_distance =
      configuration.integer(zero + "stage3_max_reuse_distance", options.max_reuse_distance);
  options.second_partition_ranks = std::max<int64_t>(
      1, configuration.integer(zero + "zero_hpz_partition_size", options.second_partition_ranks));
  set_offload(configuration, options);
  if (configuration.has("bf16.check_grad_overflow")) {
    options.checks_bf16 = configuration.boolean("bf16.check_grad_overflow", true);
  }
  options.loss_scale = loss_scale_of(arguments, configuration);
  options.compares_tags = compares_tags(configuration);
  if (configuration.has("gradient_clipping")) {
    const double limit = configuration.number("gradient_clipping", 0);
    options.clipping =
        limit > 0 ? GradientClipping{GradientClipping::Algorithm::norm, limit} : GradientClipping{};
  }
  options.division = {configuration.boolean("prescale_gradients", false),
                      configuration.number("gradient_predivide_factor", 1)};
  if (configuration.has("communication_data_type")) {
    options.communication_data_type = dtype_argument(arguments, "config.communication_data_type");
  }
  return options;
}

}  // namespace lockstep
