// FSDPStrategy's arguments, as Lightning hands them to FullyShardedDataParallel.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/core/spelling.hpp"
#include "model/core/units_text.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/dtype_argument.hpp"
#include "model/strategy/sharded/fsdp/flat_parameters.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp_argument_rows.hpp"
#include "model/strategy/sharded/fsdp/fsdp_groups.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

using Sharding = FullyShardedOptions::Sharding;
using Prefetch = FullyShardedOptions::BackwardPrefetch;

template <class Value, size_t count>
Value one_of(const std::string& given, const std::string& name,
             const std::array<std::pair<std::string_view, Value>, count>& names) {
  // Of an enumeration, as the script writes it: ShardingStrategy.FULL_SHARD.
  const std::string asked = given.substr(given.rfind('.') + 1);
  std::vector<std::string_view> known;
  for (const auto& [text, value] : names) {
    if (asked == text) {
      return value;
    }
    known.push_back(text);
  }
  throw ArgumentProblem(
      fmt::format("strategy argument {} must be one of {}", name, fmt::join(known, ", ")), name,
      did_you_mean(asked, known));
}

constexpr std::array shardings{
    std::pair(std::string_view("FULL_SHARD"), Sharding::full),
    std::pair(std::string_view("SHARD_GRAD_OP"), Sharding::grad_op),
    std::pair(std::string_view("NO_SHARD"), Sharding::none),
    std::pair(std::string_view("HYBRID_SHARD"), Sharding::hybrid),
    std::pair(std::string_view("_HYBRID_SHARD_ZERO2"), Sharding::hybrid_grad_op)};
constexpr std::array prefetches{std::pair(std::string_view("BACKWARD_PRE"), Prefetch::before),
                                std::pair(std::string_view("BACKWARD_POST"), Prefetch::after)};

constexpr std::array state_dict_types{std::pair(std::string_view("full"), false),
                                      std::pair(std::string_view("sharded"), true)};

constexpr const char* sharding_strategy = "sharding_strategy";

// _init_sharding_strategy of lightning/fabric/strategies/fsdp.py reads the name in any case.
std::string in_upper_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char letter) {
    return 'a' <= letter && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  return text;
}

constexpr std::string_view nested_names[] = {
    "auto_wrap_policy.ModuleWrapPolicy.module_classes",
    "auto_wrap_policy.transformer_auto_wrap_policy.transformer_layer_cls",
    "auto_wrap_policy.size_based_auto_wrap_policy.min_num_params",
    "activation_checkpointing_policy.ModuleWrapPolicy.module_classes",
    "activation_checkpointing_policy.transformer_auto_wrap_policy.transformer_layer_cls",
    "cpu_offload.offload_params",
    "mixed_precision.param_dtype",
    "mixed_precision.reduce_dtype",
    "mixed_precision.buffer_dtype",
    "mixed_precision.cast_forward_inputs",
    "mixed_precision.cast_root_forward_inputs",
    "mixed_precision._module_classes_to_ignore",
};
constexpr std::string_view unmodelled_names[] = {
    "auto_wrap_policy.size_based_auto_wrap_policy.force_leaf_modules",
    "auto_wrap_policy.size_based_auto_wrap_policy.exclude_wrap_modules",
    "activation_checkpointing_policy.size_based_auto_wrap_policy.force_leaf_modules",
    "activation_checkpointing_policy.size_based_auto_wrap_policy.exclude_wrap_modules",
    "activation_checkpointing_policy.size_based_auto_wrap_policy.min_num_params",
    "mixed_precision.keep_low_precision_grads"};

constexpr NestedClass nested_classes[] = {{"cpu_offload", "CPUOffload"},
                                          {"mixed_precision", "MixedPrecision"}};

constexpr const char* checkpointing = "activation_checkpointing";
constexpr const char* checkpointing_policy = "activation_checkpointing_policy";

std::vector<std::string> checkpointed_by(const StrategyArguments& arguments) {
  const bool has_older = arguments.has(checkpointing);
  return has_older ? last_parts(arguments.texts(checkpointing))
                   : policy_classes(arguments, checkpointing_policy);
}

// `null` asks for nothing.
bool names_policy(const StrategyArguments& arguments, const std::string& name) {
  return std::ranges::any_of(arguments.all(), [&](const auto& each) {
    return !arguments.is_none(each.first) &&
           (each.first == name || each.first.starts_with(name + "."));
  });
}

// The network has been built with these segments.
void check_checkpointing(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const std::vector<std::string> classes = checkpointed_by(arguments);
  if (arguments.has(checkpointing) && !policy_classes(arguments, checkpointing_policy).empty()) {
    throw RefusedArgument(
        "ValueError: You cannot set both `activation_checkpointing` and "
        "`activation_checkpointing_policy`. Use the latter.",
        checkpointing, "leave one of them out");
  }
  if (classes == std::vector<std::string>{"size_based_auto_wrap_policy"}) {
    throw UnmodelledArgument("a size for `activation_checkpointing_policy` is not modelled yet",
                             checkpointing_policy);
  }
  check_classes(wrap_classes(classes), *plan.network,
                arguments.has(checkpointing) ? checkpointing : checkpointing_policy);
}

// _init_sharding_strategy of lightning/fabric/strategies/fsdp.py; torch raises the same for
// wrappers of one's own. FSDPStrategy before 2.1 hands over the default group, which has no
// replicas.
void check_hybrid(const StrategyArguments& arguments, bool has_default_group) {
  if (has_default_group) {
    throw RefusedArgument(
        "ValueError: Expected process_group to be passed in as either None or "
        "Tuple[dist.ProcessGroup, dist.ProcessGroup]: this Lightning always hands over the default "
        "process group",
        sharding_strategy, "use Lightning 2.1 or newer, or another sharding_strategy");
  }
  if (!names_policy(arguments, "auto_wrap_policy") && !arguments.has("device_mesh") &&
      !arguments.has("process_group")) {
    throw RefusedArgument(
        "RuntimeError: The hybrid sharding strategy requires you to pass at least one of the "
        "parameters: `auto_wrap_policy`, `process_group` tuple, or `device_mesh`.",
        sharding_strategy, "give `auto_wrap_policy`, or `device_mesh: [replicas, shards]`");
  }
}

// FSDPPrecision: mixed precision gathers, computes and reduces in the narrow type. Before Lightning
// 2.6 it gathered fp32, for autocast to narrow.
void set_types(const TrainingPlan& plan, const StrategyArguments& arguments,
               const StrategyArgumentReader& read, FullyShardedOptions& options) {
  const std::string mixed = "mixed_precision.";
  const bool is_given = names_policy(arguments, "mixed_precision");
  const bool is_wide = read.boolean("wide_mixed_precision");
  if (plan.types().is_mixed() && !is_given) {
    options.param_dtype = is_wide ? plan.parameter_dtype : plan.activation_dtype;
    options.reduce_dtype = plan.activation_dtype;
  }
  if (arguments.has(mixed + "param_dtype")) {
    options.param_dtype = dtype_argument(arguments, mixed + "param_dtype");
  }
  if (arguments.has(mixed + "reduce_dtype")) {
    options.reduce_dtype = dtype_argument(arguments, mixed + "reduce_dtype");
  }
  // Units that cast what they get do so for the layers that need it.
  options.casts_input = arguments.boolean(mixed + "cast_root_forward_inputs", true) ||
                        arguments.boolean(mixed + "cast_forward_inputs", false);
}

// Batch norms of these classes become units without mixed precision: _auto_wrap of
// torch/distributed/fsdp/_wrap_utils.py. FSDPStrategy from 2.1 on always hands over a
// MixedPrecision, one of fp32 under 32-true.
bool keeps_norms_apart(const TrainingPlan& plan, const StrategyArguments& arguments,
                       bool always_has_types) {
  const std::string name = "mixed_precision._module_classes_to_ignore";
  const bool has_types =
      always_has_types || plan.types().is_mixed() || names_policy(arguments, "mixed_precision");
  const std::vector<std::string> all{"_BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
                                     "SyncBatchNorm"};
  std::vector<std::string> given = all;
  if (arguments.has(name)) {
    given = last_parts(arguments.texts(name));
  }
  size_t norms = 0;
  size_t named = 0;
  for (const NetworkBlock& block : plan.network->blocks) {
    if (block.class_name.starts_with("BatchNorm")) {
      const std::string& its_class = plan.synchronises_batch_norm ? all.back() : block.class_name;
      ++norms;
      named += std::ranges::count(given, its_class) + std::ranges::count(given, all.front()) > 0;
    }
  }
  const bool has_others = std::ranges::any_of(
      given, [&](const std::string& each) { return std::ranges::count(all, each) == 0; });
  if (has_others || (named != 0 && named != norms)) {
    throw UnmodelledArgument(fmt::format("`{}` is modelled for all batch norms or none", name),
                             name, "leave it out, or write [_BatchNorm] or []");
  }
  return named != 0 && has_types && names_policy(arguments, "auto_wrap_policy");
}

// Types of buffers where there are any that it casts.
void check_buffer_type(const TrainingPlan& plan, const StrategyArguments& arguments,
                       const WrapPolicy& wrap) {
  const std::string name = "mixed_precision.buffer_dtype";
  bool has_buffers = false;
  for (size_t layer = 0; layer < plan.network->layers.size(); ++layer) {
    const bool is_cast = !is_apart(*plan.network, wrap, layer);
    has_buffers = has_buffers || (is_cast && !plan.network->layers[layer].buffers.empty());
  }
  if (arguments.has(name) && dtype_argument(arguments, name) != DType::fp32 && has_buffers) {
    throw UnmodelledArgument(
        "`mixed_precision.buffer_dtype` of FSDPStrategy in 16 bits is not modelled for a model "
        "with buffers",
        name, "leave it out: buffers stay in fp32");
  }
}

// What is ignored stays in its own type, and on its own device.
void set_ignored(const TrainingPlan& plan, const StrategyArguments& arguments,
                 FullyShardedOptions& options) {
  const std::string older = "ignored_modules";
  const std::string newer = "ignored_states";
  if (arguments.has(older) && arguments.has(newer)) {
    throw RefusedArgument(
        "ValueError: Cannot pass both ignored_modules and ignored_states at the same time. Please "
        "just pass ignored_states.",
        older, "leave it out");
  }
  const std::string name = arguments.has(older) ? older : newer;
  options.wrap.ignored = ignored_modules(arguments, *plan.network, name);
  const bool is_narrow = options.param_dtype.value_or(plan.parameter_dtype) != plan.parameter_dtype;
  if (!options.wrap.ignored.empty() && (is_narrow || options.cpu_offload)) {
    throw UnmodelledArgument(
        fmt::format("`{}` of FSDPStrategy with {} is not modelled", name,
                    is_narrow ? "parameters gathered in a narrower type" : "cpu_offload"),
        name,
        is_narrow ? "freeze these layers and let FSDP shard them, or train in one type"
                  : "freeze these layers and let FSDP shard them, or leave cpu_offload out");
  }
}

FullyShardedOptions options_from(const TrainingPlan& plan, const StrategyArguments& given) {
  const StrategyArguments arguments =
      without_class_names(with_named_objects(given), nested_classes);
  check_nested_names(arguments, {"FSDPStrategy", nested_names, unmodelled_names});
  const StrategyArgumentReader read(arguments, fsdp_arguments());
  FullyShardedOptions options;
  options.sharding =
      one_of(in_upper_case(read.text(sharding_strategy)), sharding_strategy, shardings);
  options.backward_prefetch =
      arguments.is_none("backward_prefetch")
          ? Prefetch::none
          : one_of(read.text("backward_prefetch"), "backward_prefetch", prefetches);
  options.forward_prefetch = read.boolean("forward_prefetch");
  options.limit_all_gathers = read.boolean("limit_all_gathers");
  options.use_orig_params = read.boolean("use_orig_params");
  options.sync_module_states = read.boolean("sync_module_states");
  options.cpu_offload =
      arguments.boolean("cpu_offload.offload_params", read.boolean("cpu_offload"));
  set_types(plan, arguments, read, options);
  options.clips_by_own_norm = read.boolean("clips_by_own_norm");
  const bool has_default_group = read.boolean("default_process_group");
  if (options.is_hybrid()) {
    check_hybrid(arguments, has_default_group);
  }
  set_fsdp_groups(plan, arguments, options);
  options.saves_in_parts =
      one_of(read.text("state_dict_type"), "state_dict_type", state_dict_types);
  options.gathers_optimizer_state = read.boolean("gathers_optimizer_state");
  check_checkpointing(plan, arguments);
  options.wrap = wrap_policy(arguments);
  check_classes(options.wrap, *plan.network, "auto_wrap_policy");
  options.wrap.batch_norms_apart = keeps_norms_apart(plan, arguments, !has_default_group);
  options.casts_norms = !has_default_group;
  check_buffer_type(plan, arguments, options.wrap);
  set_ignored(plan, arguments, options);
  if (!options.use_orig_params) {
    // Each unit copies what it finds into its flat parameter.
    refuse_untied(options.wrap, *plan.network, "FullyShardedDataParallel with flat parameters",
                  "auto_wrap_policy");
  }
  if (!options.use_orig_params || !plan.takes_partly_frozen_units) {
    const bool is_callable =
        arguments.has("auto_wrap_policy.transformer_auto_wrap_policy.transformer_layer_cls");
    refuse_partly_frozen(
        *plan.network, options.wrap,
        {!plan.takes_partly_frozen_units, options.wrap.min_num_params == 0 && !is_callable});
  }
  return options;
}

// max_memory_allocated does not show it, as the host frees a unit when it has issued what uses it.
std::vector<std::pair<std::string, std::string>> reserved_ahead(
    const TrainingPlan& plan, const StrategyArguments& arguments) {
  const FullyShardedOptions options = options_from(plan, arguments);
  if (options.limit_all_gathers || !plan.is_on_gpu || plan.world_size == 1 ||
      options.sharding == Sharding::none) {
    return {};
  }
  int64_t elements = 0;
  for (const ParameterPlace place : plan.network->parameters()) {
    elements += plan.network->parameter(place).elements();
  }
  const int64_t size = size_of(options.param_dtype.value_or(plan.parameter_dtype));
  return {{"limit_all_gathers",
           fmt::format("`limit_all_gathers: false` is modelled in time, not in memory: the caching "
                       "allocator reserves gathered units until the GPU has used them, up to {} "
                       "for each pass that the host is ahead, which is not in the memory shown",
                       text_of(Bytes(elements * size)))}};
}

// NO_SHARD has nothing to gather.
std::vector<std::pair<std::string, std::string>> gathering_without_shards(
    const TrainingPlan& plan, const StrategyArguments& arguments) {
  std::vector<std::pair<std::string, std::string>> found;
  if (options_from(plan, arguments).sharding != Sharding::none) {
    return found;
  }
  for (const char* name : {"forward_prefetch", "backward_prefetch"}) {
    const StrategyArgument* row = find_argument(fsdp_arguments(), name);
    const StrategyArguments::Value* value = arguments.find(name);
    if (value != nullptr && *value != default_of(*row)) {
      found.emplace_back(
          name, fmt::format("`{}` has no effect: with NO_SHARD no unit is gathered", name));
    }
  }
  return found;
}

}  // namespace

StrategyEntry fully_sharded_data_parallel() {
  StrategyEntry entry;
  entry.name = "fsdp";
  entry.class_name = "FSDPStrategy";
  entry.divided = {{.name = "FSDPStrategy", .argument = "auto_wrap_policy", .value = "blocks"}};
  entry.traits = {.precisions = Precisions::no_double,
                  .needs_gpu = true,
                  .clips_by_norm = false,
                  .manual_clipping = ManualClipping::norm_refused,
                  .statistics = StatisticsSharing::converts,
                  .accumulates_whole_gradients = true,
                  .loss_scaling = LossScaling::of_trainer,
                  .takes_tensor_norms = true,
                  .gathers_parameters = "FullyShardedDataParallel.summon_full_params"};
  entry.traits.world_is_data_parallel = true;
  entry.arguments = {fsdp_arguments().begin(), fsdp_arguments().end()};
  entry.other_classes = {
      {"DDPFullyShardedNativeStrategy", {native_arguments().begin(), native_arguments().end()}}};
  add_steps(fsdp_sites::every_step, entry.sites);
  entry.checkpointed_classes = [](const StrategyArguments& arguments) {
    try {
      return checkpointed_by(with_named_objects(arguments));
    } catch (const std::invalid_argument&) {  // no list of names
      return std::vector<std::string>();
    }
  };
  entry.of_size = fsdp_arguments_of_size;
  entry.without_effect = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    std::vector<std::pair<std::string, std::string>> found = reserved_ahead(plan, arguments);
    for (auto& idle : gathering_without_shards(plan, arguments)) {
      found.push_back(std::move(idle));
    }
    const std::string policy = "auto_wrap_policy";
    if (names_policy(arguments, policy)) {
      std::string why =
          what_wraps_nothing(wrap_policy(with_named_objects(arguments)), *plan.network, policy);
      if (!why.empty()) {
        found.emplace_back(policy, std::move(why));
      }
    }
    return found;
  };
  entry.gives_parts = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    const FullyShardedOptions options = options_from(plan, arguments);
    return !options.use_orig_params || (plan.world_size != 1 && options.sharding != Sharding::none);
  };
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<FullyShardedDataParallel>(plan, options_from(plan, arguments));
  };
  return entry;
}

StrategyEntry native_fully_sharded() {
  StrategyEntry entry = fully_sharded_data_parallel();
  entry.name = "fsdp_native";
  entry.class_name = "DDPFullyShardedNativeStrategy";
  entry.divided.clear();  // Lightning 2 has it no more
  entry.traits.clips_by_norm = true;
  entry.traits.manual_clipping = ManualClipping::clips;
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    FullyShardedOptions options = options_from(plan, arguments);
    options.name = "fsdp_native";
    options.mixed_plugin = "FullyShardedNativeNativeMixedPrecisionPlugin";
    options.clips_by_own_norm = true;
    return std::make_unique<FullyShardedDataParallel>(plan, options);
  };
  return entry;
}

}  // namespace lockstep
