// The keys of DeepSpeed's own configuration.
#include "model/strategy/sharded/deepspeed/deepspeed_keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "model/core/spelling.hpp"

namespace lockstep {

namespace {

using Names = std::vector<std::string_view>;

// deepspeed/runtime/zero/config.py, deepspeed/runtime/config.py.
const Names known_keys = {"activation_checkpointing.partition_activations",
                          "activation_checkpointing.cpu_checkpointing",
                          "activation_checkpointing.contiguous_memory_optimization",
                          "activation_checkpointing.synchronize_checkpoint_boundary",
                          "activation_checkpointing.number_checkpoints",
                          "activation_checkpointing.profile",
                          "zero_optimization.stage",
                          "zero_optimization.contiguous_gradients",
                          "zero_optimization.reduce_scatter",
                          "zero_optimization.reduce_bucket_size",
                          "zero_optimization.use_multi_rank_bucket_allreduce",
                          "zero_optimization.overlap_comm",
                          "zero_optimization.round_robin_gradients",
                          "zero_optimization.sub_group_size",
                          "zero_optimization.stage3_prefetch_bucket_size",
                          "zero_optimization.stage3_param_persistence_threshold",
                          "zero_optimization.stage3_model_persistence_threshold",
                          "zero_optimization.stage3_max_live_parameters",
                          "zero_optimization.stage3_max_reuse_distance",
                          "zero_optimization.zero_hpz_partition_size",
                          "zero_optimization.ignore_unused_parameters",
                          "zero_optimization.offload_optimizer.device",
                          "zero_optimization.offload_optimizer.nvme_path",
                          "zero_optimization.offload_optimizer.buffer_count",
                          "zero_optimization.offload_optimizer.pipeline_read",
                          "zero_optimization.offload_optimizer.pipeline_write",
                          "zero_optimization.offload_param.device",
                          "zero_optimization.offload_param.nvme_path",
                          "zero_optimization.offload_param.buffer_count",
                          "zero_optimization.offload_param.buffer_size",
                          "zero_optimization.offload_param.max_in_cpu",
                          "aio.block_size",
                          "aio.intra_op_parallelism",
                          "fp16.enabled",
                          "fp16.loss_scale",
                          "fp16.initial_scale_power",
                          "fp16.loss_scale_window",
                          "fp16.hysteresis",
                          "fp16.min_loss_scale",
                          "fp16.consecutive_hysteresis",
                          "bf16.enabled",
                          "communication_data_type",
                          "data_types.grad_accum_dtype",
                          "optimizer.type",
                          "optimizer.legacy_fusion",
                          "optimizer.params",
                          "scheduler.type",
                          "scheduler.params",
                          "gradient_clipping"};
// What changes neither calls nor memory here, or what Lightning fills in.
const Names ignored_keys = {"zero_optimization.allgather_bucket_size",
                            "zero_optimization.allgather_partitions",
                            "zero_optimization.load_from_fp32_weights",
                            "zero_optimization.elastic_checkpoint",
                            "zero_optimization.legacy_stage1",
                            "zero_optimization.stage3_gather_16bit_weights_on_model_save",
                            "zero_optimization.stage3_gather_fp16_weights_on_model_save",
                            "zero_optimization.cpu_offload_use_pin_memory",
                            "zero_optimization.memory_efficient_linear",
                            "zero_optimization.override_module_apply",
                            "zero_optimization.pipeline_loading_checkpoint",
                            "zero_optimization.offload_optimizer.pin_memory",
                            "zero_optimization.offload_optimizer.fast_init",
                            "zero_optimization.offload_param.pin_memory",
                            "aio.queue_depth",
                            "aio.single_submit",
                            "aio.overlap_events",
                            "aio.thread_count",
                            "fp16.auto_cast",
                            "train_batch_size",
                            "train_micro_batch_size_per_gpu",
                            "steps_per_print",
                            "wall_clock_breakdown",
                            "zero_allow_untested_optimizer",
                            "zero_force_ds_cpu_optimizer",
                            "dump_state",
                            "prescale_gradients",
                            "seq_parallel_communication_data_type",
                            "dataloader_drop_last",
                            "disable_allgather",
                            "use_node_local_storage",
                            "graph_harvesting",
                            "timers",
                            "nebula",
                            "memory_breakdown"};
/// A field of DeepSpeedZeroConfig that has another name beside (`populate_by_name`), or that was
/// replaced.
struct OtherName {
  std::string_view name;
  std::string_view of_today;
};
const std::vector<OtherName> other_names = {
    {"zero_optimization.prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"},
    {"zero_optimization.param_persistence_threshold",
     "zero_optimization.stage3_param_persistence_threshold"},
    {"zero_optimization.model_persistence_threshold",
     "zero_optimization.stage3_model_persistence_threshold"},
    {"zero_optimization.max_live_parameters", "zero_optimization.stage3_max_live_parameters"},
    {"zero_optimization.max_reuse_distance", "zero_optimization.stage3_max_reuse_distance"},
    {"zero_optimization.gather_16bit_weights_on_model_save",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save"},
    {"zero_optimization.module_granularity_threshold",
     "zero_optimization.stage3_module_granularity_threshold"},
    {"zero_optimization.use_all_reduce_for_fetch_params",
     "zero_optimization.stage3_use_all_reduce_for_fetch_params"}};
// Booleans that became groups: true is the host's memory.
const std::vector<OtherName> former_switches = {
    {"zero_optimization.cpu_offload", "zero_optimization.offload_optimizer.device"},
    {"zero_optimization.cpu_offload_param", "zero_optimization.offload_param.device"}};

const OtherName* find_name(const std::vector<OtherName>& names, std::string_view key) {
  const auto found = std::ranges::find(names, key, &OtherName::name);
  return found == names.end() ? nullptr : &*found;
}

std::string_view key_of_today(std::string_view key) {
  const OtherName* other = find_name(other_names, key);
  return other == nullptr ? key : other->of_today;
}

struct UnmodelledKey {
  std::string_view name;
  std::string_view instead;
};
constexpr std::string_view without_zero_plus_plus =
    "of ZeRO++ `zero_hpz_partition_size` is modelled";
constexpr std::string_view without_mics =
    "this is MiCS; stage 3 is modelled, and FSDPStrategy with sharding_strategy: HYBRID_SHARD";
const std::vector<UnmodelledKey> unmodelled_keys = {
    {"zero_optimization.zero_quantized_weights", without_zero_plus_plus},
    {"zero_optimization.zero_quantized_gradients", without_zero_plus_plus},
    {"zero_optimization.zero_quantized_nontrainable_weights", without_zero_plus_plus},
    {"zero_optimization.mics_shard_size", without_mics},
    {"zero_optimization.mics_hierarchical_params_gather", without_mics},
    {"zero_optimization.offload_optimizer.ratio", "the whole optimizer offloaded is modelled"},
    {"zero_optimization.zeropp_loco_param", without_zero_plus_plus},
    {"zero_optimization.stage3_module_granularity_threshold",
     "parameters are fetched for each module"},
    {"zero_optimization.stage3_use_all_reduce_for_fetch_params",
     "parameters are fetched by all_gather"},
    {"sparse_gradients", "dense gradients are modelled"},
    {"sparse_attention", ""},
    {"gradient_predivide_factor", "division by the number of ranks is modelled"},
    {"data_types", ""},
    {"amp", "fp16 and bf16 by `precision` are modelled"},
    {"aio.use_gds", "reading and writing through host memory is modelled"},
    {"comms_logger", ""},
    {"flops_profiler", ""},
    {"tensorboard", ""},
    {"wandb", ""},
    {"csv_monitor", ""},
    {"data_efficiency", ""},
    {"curriculum_learning", ""},
    {"elasticity", ""},
    {"autotuning", ""},
    {"compression_training", ""},
    {"pipeline", ""},
    {"checkpoint", ""},
    {"sequence_parallel_size", ""},
    {"tensor_parallel", ""},
    {"torch_autocast", "bf16 and fp16 by `precision` are modelled"},
    {"fp32_allreduce", "communication_data_type: fp32 is modelled"},
    {"eigenvalue", ""},
    {"progressive_layer_drop", ""},
    {"quantize_training", ""},
    {"compile", ""}};

bool is_or_is_below(std::string_view key, std::string_view name) {
  return key == name || (key.starts_with(name) && key[name.size()] == '.');
}

bool is_among(const Names& names, std::string_view key) {
  return std::ranges::any_of(names,
                             [key](std::string_view name) { return is_or_is_below(key, name); });
}

// What a key says that asks for nothing: off, one part, the whole.
bool asks_for_nothing(const StrategyArguments::Value& value) {
  if (const bool* truth = std::get_if<bool>(&value)) {
    return !*truth;
  }
  if (const int64_t* number = std::get_if<int64_t>(&value)) {
    return *number <= 1;
  }
  const double* number = std::get_if<double>(&value);
  return std::holds_alternative<std::monostate>(value) || (number != nullptr && *number == 1);
}

// These sections do nothing until `enabled` is true, whatever else they say.
bool is_switched_off(const StrategyArguments& arguments, std::string_view section) {
  const Names switched = {"amp",
                          "autotuning",
                          "comms_logger",
                          "csv_monitor",
                          "curriculum_learning",
                          "data_efficiency",
                          "eigenvalue",
                          "elasticity",
                          "flops_profiler",
                          "progressive_layer_drop",
                          "tensorboard",
                          "torch_autocast",
                          "wandb"};
  return std::ranges::count(switched, section) != 0 &&
         !arguments.boolean(fmt::format("config.{}.enabled", section), false);
}

// A key that has others below it, given as a plain value.
bool is_group(std::string_view key) {
  return std::ranges::any_of(known_keys, [key](std::string_view name) {
    return name.starts_with(key) && name.size() > key.size() && name[key.size()] == '.';
  });
}

/// Part of a path, from `begin` to the next dot or the end.
std::string_view part_at(std::string_view path, size_t begin) {
  return path.substr(begin, path.find('.', begin) - begin);
}

/// What may stand behind `prefix`, which is empty or ends with a dot.
Names parts_behind(std::string_view prefix) {
  Names parts;
  const auto add = [&](std::string_view name) {
    if (name.starts_with(prefix)) {
      const std::string_view part = part_at(name, prefix.size());
      if (std::ranges::count(parts, part) == 0) {
        parts.push_back(part);
      }
    }
  };
  std::ranges::for_each(known_keys, add);
  std::ranges::for_each(ignored_keys, add);
  for (const UnmodelledKey& key : unmodelled_keys) {
    add(key.name);
  }
  return parts;
}

// The first part of the path that does not exist is the one that is misspelt, or its group is
// missing: `stage` is a key of `zero_optimization`.
std::string remedy_for_key(std::string_view key) {
  size_t begin = 0;
  Names parts = parts_behind("");
  while (std::ranges::count(parts, part_at(key, begin)) != 0 && begin < key.size()) {
    begin += part_at(key, begin).size() + 1;
    parts = parts_behind(key.substr(0, std::min(begin, key.size())));
  }
  if (begin >= key.size()) {
    return "";
  }
  const std::string_view wrong = part_at(key, begin);
  if (const std::string near = nearest_spelling(wrong, parts); !near.empty()) {
    return fmt::format("did you mean `{}{}`?", key.substr(0, begin), near);
  }
  for (const Names& names : {known_keys, ignored_keys}) {
    const auto found = std::ranges::find_if(
        names, [&](std::string_view name) { return name.ends_with(fmt::format(".{}", key)); });
    if (found != names.end()) {
      return fmt::format("did you mean `{}`?", *found);
    }
  }
  constexpr size_t shown = 8;
  return begin == 0 || parts.size() > shown
             ? ""
             : fmt::format("`{}` holds {}", key.substr(0, begin - 1), fmt::join(parts, ", "));
}

// Of a class, which checks it.
bool is_parameter(std::string_view key) {
  return is_or_is_below(key, "optimizer.params") || is_or_is_below(key, "scheduler.params");
}

// `zero_optimization: true` is stage 1 (read_zero_config_deprecated).
bool is_former_zero(std::string_view key, const StrategyArguments::Value& value) {
  return key == "zero_optimization" && std::holds_alternative<bool>(value);
}

bool is_empty_map(const StrategyArguments::Value& value) {
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  return list != nullptr && list->empty();
}

// DeepSpeedZeroConfig takes a field by either name and forbids what is left over; "auto" is dropped
// before (runtime/config_utils.py).
void check_names_of_field(const StrategyArguments& arguments, const std::string& given,
                          const std::string& of_today) {
  const auto counts = [&arguments](const std::string& key) {
    const StrategyArguments::Value* value = arguments.find("config." + key);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return value != nullptr && (text == nullptr || *text != "auto");
  };
  if (given != of_today && counts(given) && counts(of_today)) {
    throw RefusedArgument(
        fmt::format("ValidationError: DeepSpeedZeroConfig: Extra inputs are not permitted: `{}` "
                    "and `{}` are names of one field",
                    given, of_today),
        "config." + given, "leave one of them out");
  }
}

}  // namespace

StrategyArguments with_keys_of_today(const StrategyArguments& arguments) {
  const std::string prefix = "config.";
  StrategyArguments renamed = arguments;
  for (const auto& [name, value] : arguments.all()) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    const std::string key = name.substr(prefix.size());
    if (const OtherName* other = find_name(other_names, key)) {
      renamed.set(prefix + std::string(other->of_today), value);
    } else if (const OtherName* switched = find_name(former_switches, key)) {
      if (arguments.boolean(name, false)) {
        renamed.set(prefix + std::string(switched->of_today), std::string("cpu"));
      }
    } else if (is_former_zero(key, value)) {
      renamed.set(name + ".stage", int64_t{arguments.boolean(name, false)});
    }
  }
  return renamed;
}

void check_deepspeed_keys(const StrategyArguments& arguments) {
  const std::string prefix = "config.";
  for (const auto& [name, value] : arguments.all()) {
    if (!name.starts_with(prefix)) {
      continue;
    }
    const std::string key(key_of_today(name.substr(prefix.size())));
    check_names_of_field(arguments, name.substr(prefix.size()), key);
    if (find_name(former_switches, key) != nullptr || is_former_zero(key, value)) {
      continue;
    }
    if (key == "gradient_accumulation_steps") {
      // _format_batch_size_and_grad_accum_config of lightning/pytorch/strategies/deepspeed.py.
      throw RefusedArgument(
          "`gradient_accumulation_steps` must not be in a DeepSpeed configuration: Lightning sets "
          "them itself",
          name, "write trainer.accumulate_grad_batches in their place");
    }
    const bool is_known = std::ranges::count(known_keys, key) != 0;
    if (is_group(key) && is_empty_map(value)) {
      continue;
    }
    if (is_group(key)) {
      throw ArgumentProblem(
          fmt::format(
              "`{0}` of a DeepSpeed configuration holds keys of its own, as in {{\"{0}\": {{..}}}}",
              key),
          name);
    }
    const auto unmodelled = std::ranges::find_if(
        unmodelled_keys,
        [&key](const UnmodelledKey& known) { return is_or_is_below(key, known.name); });
    if (unmodelled != unmodelled_keys.end() && !is_known) {
      const bool is_off = is_switched_off(arguments, unmodelled->name);
      if (!is_off && !asks_for_nothing(value)) {
        throw UnmodelledArgument(
            fmt::format("`{}` of a DeepSpeed configuration is not modelled{}{}", key,
                        unmodelled->instead.empty() ? "" : ": ", unmodelled->instead),
            name);
      }
    } else if (!is_known && !is_among(ignored_keys, key) && !is_parameter(key)) {
      throw ArgumentProblem(fmt::format("DeepSpeed has no configuration key `{}`", key), name,
                            remedy_for_key(key));
    }
  }
}

}  // namespace lockstep
