// DeepSpeedStrategy's arguments and DeepSpeed's own configuration.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_stage0.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_stage3.hpp"

namespace lockstep {

namespace {

using Names = std::vector<std::string_view>;

int64_t at_least(int64_t least, const std::string& name, int64_t value) {
  if (value < least) {
    throw std::invalid_argument(
        fmt::format("strategy argument {} must be at least {}", name, least));
  }
  return value;
}

std::optional<DType> communicated_type(const std::string& name) {
  static const std::array<std::pair<std::string_view, DType>, 6> names{{{"fp32", DType::fp32},
                                                                        {"fp16", DType::fp16},
                                                                        {"bf16", DType::bf16},
                                                                        {"float32", DType::fp32},
                                                                        {"float16", DType::fp16},
                                                                        {"bfloat16", DType::bf16}}};
  for (const auto& [text, dtype] : names) {
    if (name == text) {
      return dtype;
    }
  }
  throw std::invalid_argument("communication_data_type must be one of fp32, fp16, bf16");
}

// Arguments of Lightning's class (strategies/deepspeed.py), which makes a configuration of them.
DeepSpeedOptions from_arguments(const StrategyArguments& arguments) {
  DeepSpeedOptions options;
  options.stage = arguments.boolean("zero_optimization", true) ? arguments.integer("stage", 2) : 0;
  options.contiguous_gradients = arguments.boolean("contiguous_gradients", true);
  options.overlap_comm = arguments.boolean("overlap_comm", true);
  options.reduce_scatter = arguments.boolean("reduce_scatter", true);
  options.reduce_bucket_size = at_least(
      1, "reduce_bucket_size", arguments.integer("reduce_bucket_size", options.reduce_bucket_size));
  options.sub_group_size =
      at_least(1, "sub_group_size", arguments.integer("sub_group_size", options.sub_group_size));
  options.offloads_optimizer = arguments.boolean("offload_optimizer", false);
  options.offloads_parameters = arguments.boolean("offload_parameters", false);
  for (const char* device :
       {"remote_device", "offload_params_device", "offload_optimizer_device"}) {
    const std::string where = arguments.text(device, "cpu");
    if (where == "nvme") {
      throw UnmodelledArgument(
          fmt::format("`{}: nvme` of DeepSpeedStrategy is not modelled yet; `cpu` is", device));
    }
    if (where != "cpu") {
      throw std::invalid_argument(fmt::format("strategy argument {} must be cpu or nvme", device));
    }
  }
  options.loss_scale.loss_scale = arguments.number("loss_scale", 0);
  options.loss_scale.initial_scale_power = arguments.integer("initial_scale_power", 16);
  options.loss_scale.window =
      at_least(1, "loss_scale_window", arguments.integer("loss_scale_window", 1000));
  options.loss_scale.hysteresis = arguments.integer("hysteresis", 2);
  options.loss_scale.min_loss_scale = arguments.number("min_loss_scale", 1);
  return options;
}

/// A configuration's keys, by their path behind "config.".
class Configuration {
 public:
  explicit Configuration(const StrategyArguments& arguments) : arguments_(arguments) {}

  static constexpr double largest = 1e18;  ///< of a size, far beyond any model

  // "auto" stands for the default: Lightning fills in sizes of batches itself.
  bool has(const std::string& key) const {
    const auto& all = arguments_.all();
    const auto found = all.find("config." + key);
    const auto* text = found == all.end() ? nullptr : std::get_if<std::string>(&found->second);
    return found != all.end() && !arguments_.is_none("config." + key) &&
           (text == nullptr || *text != "auto");
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
    if (!(given <= largest)) {
      throw std::invalid_argument(
          fmt::format("strategy argument config.{} must be at most {:.0e}", key, largest));
    }
    return at_least(least, "config." + key, static_cast<int64_t>(given));
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

// deepspeed/runtime/zero/config.py, deepspeed/runtime/config.py.
const Names known_keys = {"zero_optimization.stage",
                          "zero_optimization.contiguous_gradients",
                          "zero_optimization.reduce_scatter",
                          "zero_optimization.reduce_bucket_size",
                          "zero_optimization.use_multi_rank_bucket_allreduce",
                          "zero_optimization.overlap_comm",
                          "zero_optimization.round_robin_gradients",
                          "zero_optimization.sub_group_size",
                          "zero_optimization.stage3_prefetch_bucket_size",
                          "zero_optimization.stage3_param_persistence_threshold",
                          "zero_optimization.stage3_max_live_parameters",
                          "zero_optimization.stage3_max_reuse_distance",
                          "zero_optimization.offload_optimizer.device",
                          "zero_optimization.offload_param.device",
                          "fp16.enabled",
                          "fp16.loss_scale",
                          "fp16.initial_scale_power",
                          "fp16.loss_scale_window",
                          "fp16.hysteresis",
                          "fp16.min_loss_scale",
                          "bf16.enabled",
                          "communication_data_type",
                          "gradient_clipping"};
// What changes neither calls nor memory here, or what Lightning fills in.
const Names ignored_keys = {"zero_optimization.allgather_bucket_size",
                            "zero_optimization.allgather_partitions",
                            "zero_optimization.load_from_fp32_weights",
                            "zero_optimization.elastic_checkpoint",
                            "zero_optimization.ignore_unused_parameters",
                            "zero_optimization.legacy_stage1",
                            "zero_optimization.stage3_gather_16bit_weights_on_model_save",
                            "zero_optimization.stage3_gather_fp16_weights_on_model_save",
                            "zero_optimization.offload_optimizer.pin_memory",
                            "zero_optimization.offload_optimizer.buffer_count",
                            "zero_optimization.offload_optimizer.fast_init",
                            "zero_optimization.offload_param.pin_memory",
                            "zero_optimization.offload_param.buffer_count",
                            "zero_optimization.offload_param.buffer_size",
                            "zero_optimization.offload_param.max_in_cpu",
                            "fp16.auto_cast",
                            "fp16.consecutive_hysteresis",
                            "train_batch_size",
                            "train_micro_batch_size_per_gpu",
                            "steps_per_print",
                            "wall_clock_breakdown",
                            "zero_allow_untested_optimizer",
                            "zero_force_ds_cpu_optimizer",
                            "dump_state",
                            "prescale_gradients",
                            "memory_breakdown"};
const Names unmodelled_keys = {"zero_optimization.zero_hpz_partition_size",
                               "zero_optimization.zero_quantized_weights",
                               "zero_optimization.zero_quantized_gradients",
                               "zero_optimization.zero_quantized_nontrainable_weights",
                               "zero_optimization.mics_shard_size",
                               "zero_optimization.mics_hierarchical_params_gather",
                               "zero_optimization.offload_optimizer.ratio",
                               "zero_optimization.offload_optimizer.nvme_path",
                               "zero_optimization.offload_param.nvme_path",
                               "optimizer",
                               "scheduler",
                               "sparse_gradients",
                               "gradient_predivide_factor",
                               "data_types",
                               "amp",
                               "activation_checkpointing",
                               "aio",
                               "comms_logger",
                               "flops_profiler",
                               "tensorboard",
                               "wandb",
                               "csv_monitor",
                               "data_efficiency",
                               "curriculum_learning",
                               "elasticity",
                               "autotuning",
                               "compression_training",
                               "pipeline",
                               "checkpoint",
                               "sequence_parallel_size"};

bool is_among(const Names& names, std::string_view key) {
  return std::ranges::any_of(names, [key](std::string_view name) {
    return key == name || (key.starts_with(name) && key[name.size()] == '.');
  });
}

// A key that has others below it, given as a plain value.
bool is_group(std::string_view key) {
  return std::ranges::any_of(known_keys, [key](std::string_view name) {
    return name.starts_with(key) && name.size() > key.size() && name[key.size()] == '.';
  });
}

void check_keys(const StrategyArguments& arguments) {
  const std::string prefix = "config.";
  for (const auto& [name, value] : arguments.all()) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    const std::string key = name.substr(prefix.size());
    if (key == "gradient_accumulation_steps") {
      // _format_batch_size_and_grad_accum_config of lightning/pytorch/strategies/deepspeed.py.
      throw std::invalid_argument(
          "Lightning refuses `gradient_accumulation_steps` in a DeepSpeed configuration: it sets "
          "them itself; write trainer.accumulate_grad_batches in their place");
    }
    if (is_group(key)) {
      throw std::invalid_argument(fmt::format(
          "`{0}` of a DeepSpeed configuration holds keys of its own, as in {{\"{0}\": {{..}}}}",
          key));
    }
    if (is_among(unmodelled_keys, key)) {
      const bool* truth = std::get_if<bool>(&value);
      const int64_t* number = std::get_if<int64_t>(&value);
      const bool asks_for_nothing = (truth != nullptr && !*truth) ||
                                    (number != nullptr && *number <= 1) || arguments.is_none(name);
      if (!asks_for_nothing) {
        throw UnmodelledArgument(
            fmt::format("`{}` of a DeepSpeed configuration is not modelled", key));
      }
    } else if (std::ranges::count(known_keys, key) == 0 && !is_among(ignored_keys, key)) {
      throw std::invalid_argument(fmt::format("DeepSpeed has no configuration key `{}`", key));
    }
  }
}

bool offloads(const Configuration& configuration, const std::string& what) {
  const std::string device = configuration.text("zero_optimization." + what + ".device", "none");
  if (device == "nvme") {
    throw UnmodelledArgument(
        fmt::format("`{}` to nvme is not modelled yet; `device: cpu` is", what));
  }
  if (device != "cpu" && device != "none") {
    throw std::invalid_argument(fmt::format("{}.device must be cpu, nvme or none", what));
  }
  return device == "cpu";
}

DeepSpeedOptions from_configuration(const StrategyArguments& arguments) {
  check_keys(arguments);
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
  options.reduce_bucket_size = configuration.integer(zero + "reduce_bucket_size", 500'000'000, 1);
  options.sub_group_size = configuration.integer(zero + "sub_group_size", 1'000'000'000, 1);
  options.prefetch_bucket_size =
      configuration.integer(zero + "stage3_prefetch_bucket_size", options.prefetch_bucket_size);
  options.param_persistence_threshold = configuration.integer(
      zero + "stage3_param_persistence_threshold", options.param_persistence_threshold);
  options.max_live_parameters =
      configuration.integer(zero + "stage3_max_live_parameters", options.max_live_parameters);
  options.max_reuse_distance =
      configuration.integer(zero + "stage3_max_reuse_distance", options.max_reuse_distance);
  options.offloads_optimizer = offloads(configuration, "offload_optimizer");
  options.offloads_parameters = offloads(configuration, "offload_param");
  options.loss_scale.loss_scale = configuration.number("fp16.loss_scale", 0);
  options.loss_scale.initial_scale_power = configuration.integer("fp16.initial_scale_power", 16);
  options.loss_scale.window = configuration.integer("fp16.loss_scale_window", 1000, 1);
  options.loss_scale.hysteresis = configuration.integer("fp16.hysteresis", 2);
  options.loss_scale.min_loss_scale = configuration.number("fp16.min_loss_scale", 1);
  if (configuration.has("gradient_clipping")) {
    const double limit = configuration.number("gradient_clipping", 0);
    options.clipping =
        limit > 0 ? GradientClipping{GradientClipping::Algorithm::norm, limit} : GradientClipping{};
  }
  if (configuration.has("communication_data_type")) {
    options.communication_data_type =
        communicated_type(configuration.text("communication_data_type", ""));
  }
  return options;
}

void check_types(const TrainingPlan& plan, const Configuration& configuration) {
  const bool fp16 = configuration.boolean("fp16.enabled", false);
  const bool bf16 = configuration.boolean("bf16.enabled", false);
  if (fp16 && bf16) {
    throw std::invalid_argument(
        "fp16 and bf16 cannot both be enabled in a DeepSpeed configuration");
  }
  if ((fp16 && plan.activation_dtype != DType::fp16) ||
      (bf16 && plan.activation_dtype != DType::bf16)) {
    throw std::invalid_argument(
        fmt::format("the DeepSpeed configuration enables {}, but the Trainer's `precision` is "
                    "another; set precision: {}",
                    fp16 ? "fp16" : "bf16", fp16 ? "16-mixed" : "bf16-mixed"));
  }
}

void check_combination(const TrainingPlan& plan, const DeepSpeedOptions& options) {
  if (options.stage < 0 || options.stage > 3) {
    throw std::invalid_argument("strategy argument stage must be 0, 1, 2 or 3");
  }
  if (plan.optimizers.size() > 1) {
    throw std::invalid_argument("DeepSpeed currently only supports a single optimizer");
  }
  if (options.offloads_parameters && options.stage != 3) {
    throw std::invalid_argument("DeepSpeed offloads parameters with stage 3 alone");
  }
  if (options.offloads_optimizer && options.stage == 0) {
    throw std::invalid_argument("DeepSpeed offloads the optimizer with stages 1, 2 and 3");
  }
  if (options.stage == 0 && plan.activation_dtype != DType::fp32) {
    throw UnmodelledArgument("stage 0 of DeepSpeed in 16 bits is not modelled; stages 1 to 3 are");
  }
}

std::unique_ptr<Strategy> make(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const bool is_configured = std::ranges::any_of(
      arguments.all(), [](const auto& each) { return each.first.starts_with("config."); });
  if (arguments.has("config") && !is_configured) {
    throw std::invalid_argument(
        "`config` of DeepSpeedStrategy is a map, or the path of a JSON file");
  }
  const DeepSpeedOptions options =
      is_configured ? from_configuration(arguments) : from_arguments(arguments);
  if (is_configured) {
    check_types(plan, Configuration(arguments));
  }
  check_combination(plan, options);
  if (options.stage == 0) {
    return std::make_unique<DeepSpeedReplicated>(plan, options);
  }
  if (options.stage == 3) {
    return std::make_unique<DeepSpeedSharded>(plan, options);
  }
  return std::make_unique<DeepSpeedPartitioned>(plan, options);
}

}  // namespace

StrategyEntry deepspeed() {
  StrategyEntry entry;
  entry.name = "deepspeed";
  entry.class_name = "DeepSpeedStrategy";
  entry.traits = {.precisions = Precisions::no_double,
                  .needs_gpu = true,
                  .clips_by_value = false,
                  .manual_clipping = ManualClipping::ignored};
  entry.arguments = {"zero_optimization",
                     "stage",
                     "remote_device",
                     "offload_optimizer",
                     "offload_parameters",
                     "offload_params_device",
                     "offload_optimizer_device",
                     "contiguous_gradients",
                     "overlap_comm",
                     "allgather_partitions",
                     "reduce_scatter",
                     "allgather_bucket_size",
                     "reduce_bucket_size",
                     "sub_group_size",
                     "zero_allow_untested_optimizer",
                     "logging_batch_size_per_gpu",
                     "logging_level",
                     "pin_memory",
                     "config",
                     "loss_scale",
                     "initial_scale_power",
                     "loss_scale_window",
                     "hysteresis",
                     "min_loss_scale"};
  for (const std::string_view step : deepspeed_sites::every_step) {
    entry.sites.push_back({std::string(step), "", 0, 0, "", "", {}, ""});
  }
  entry.make = make;
  return entry;
}

}  // namespace lockstep
