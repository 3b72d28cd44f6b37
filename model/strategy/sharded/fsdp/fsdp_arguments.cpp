// FSDPStrategy's arguments, as Lightning hands them to FullyShardedDataParallel.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/core/spelling.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "model/strategy/sharded/fsdp/wrap_arguments.hpp"

namespace lockstep {

namespace {

using Sharding = FullyShardedOptions::Sharding;
using Prefetch = FullyShardedOptions::BackwardPrefetch;

template <class Value, size_t count>
Value one_of(const StrategyArguments& arguments, const std::string& name,
             const std::array<std::pair<std::string_view, Value>, count>& names, Value otherwise) {
  if (!arguments.has(name)) {
    return otherwise;
  }
  const std::string asked = arguments.text(name, "");
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
StrategyArguments in_upper_case(StrategyArguments arguments, const std::string& name) {
  if (arguments.has(name)) {
    std::string text = arguments.text(name, "");
    std::ranges::transform(text, text.begin(), [](char letter) {
      return 'a' <= letter && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
    });
    arguments.set(name, std::move(text));
  }
  return arguments;
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
};
constexpr std::string_view unmodelled_names[] = {
    "activation_checkpointing_policy.size_based_auto_wrap_policy.min_num_params",
    "mixed_precision.buffer_dtype", "mixed_precision.keep_low_precision_grads",
    "mixed_precision.cast_forward_inputs", "mixed_precision.cast_root_forward_inputs"};

constexpr const char* checkpointing = "activation_checkpointing";
constexpr const char* checkpointing_policy = "activation_checkpointing_policy";

std::vector<std::string> checkpointed_by(const StrategyArguments& arguments) {
  const bool has_older = arguments.has(checkpointing);
  return has_older ? arguments.texts(checkpointing)
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

// FSDPPrecision: mixed precision gathers, computes and reduces in the narrow type.
FullyShardedOptions options_from(const TrainingPlan& plan, const StrategyArguments& arguments) {
  check_nested_names(arguments, {"FSDPStrategy", nested_names, unmodelled_names});
  FullyShardedOptions options;
  options.sharding = one_of(in_upper_case(arguments, sharding_strategy), sharding_strategy,
                            shardings, Sharding::full);
  options.backward_prefetch =
      one_of(arguments, "backward_prefetch", prefetches,
             arguments.is_none("backward_prefetch") ? Prefetch::none : Prefetch::before);
  options.forward_prefetch = arguments.boolean("forward_prefetch", false);
  options.limit_all_gathers = arguments.boolean("limit_all_gathers", true);
  options.use_orig_params = arguments.boolean("use_orig_params", true);
  options.sync_module_states = arguments.boolean("sync_module_states", false);
  options.cpu_offload = arguments.boolean(
      arguments.has("cpu_offload.offload_params") ? "cpu_offload.offload_params" : "cpu_offload",
      false);
  if (options.cpu_offload && options.sharding == Sharding::none) {
    throw UnmodelledArgument("`cpu_offload` of FSDPStrategy with NO_SHARD is not modelled",
                             "cpu_offload");
  }
  if (plan.types().is_mixed()) {
    options.param_dtype = plan.activation_dtype;
  }
  const std::string mixed = "mixed_precision.";
  if (arguments.has(mixed + "param_dtype")) {
    options.param_dtype = dtype_argument(arguments, mixed + "param_dtype");
  }
  if (arguments.has(mixed + "reduce_dtype")) {
    options.reduce_dtype = dtype_argument(arguments, mixed + "reduce_dtype");
  }
  if (arguments.has("device_mesh")) {
    if (!options.is_hybrid()) {
      throw ArgumentProblem(
          "device_mesh of FSDPStrategy has two dimensions, which only the sharding strategies "
          "HYBRID_SHARD and _HYBRID_SHARD_ZERO2 take",
          sharding_strategy);
    }
    options.shard_ranks = mesh_argument(plan, arguments, "device_mesh").shards;
  }
  options.saves_in_parts = one_of(arguments, "state_dict_type", state_dict_types, false);
  options.gathers_optimizer_state = arguments.boolean("gathers_optimizer_state", true);
  check_checkpointing(plan, arguments);
  options.wrap = wrap_policy(arguments);
  check_classes(options.wrap, *plan.network, "auto_wrap_policy");
  if (!options.use_orig_params) {
    // Each unit copies what it finds into its flat parameter.
    refuse_untied(options.wrap, *plan.network, "FullyShardedDataParallel with flat parameters",
                  "auto_wrap_policy");
  }
  return options;
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
                  .gathers_parameters = "FullyShardedDataParallel.summon_full_params"};
  entry.arguments = {sharding_strategy,   "auto_wrap_policy",
                     "backward_prefetch", "forward_prefetch",
                     "limit_all_gathers", "use_orig_params",
                     "mixed_precision",   "sync_module_states",
                     "cpu_offload",       "device_mesh",
                     checkpointing,       checkpointing_policy,
                     "state_dict_type",   "gathers_optimizer_state"};
  for (const std::string_view step : fsdp_sites::every_step) {
    entry.sites.push_back({std::string(step), "", 0, 0, "", "", {}, ""});
  }
  entry.checkpointed_classes = [](const StrategyArguments& arguments) {
    try {
      return checkpointed_by(arguments);
    } catch (const std::invalid_argument&) {  // no list of names
      return std::vector<std::string>();
    }
  };
  entry.of_size = [](const StrategyArguments& arguments, int64_t ranks) {
    ArgumentsOfSize changed;
    if (arguments.has("device_mesh")) {
      changed.values.emplace_back("device_mesh", mesh_of_size(arguments, "device_mesh", ranks));
      if (changed.values.back().second.empty()) {
        changed.why_not = fmt::format("the shards of device_mesh do not divide {}", ranks);
      }
    }
    return changed;
  };
  entry.without_effect = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    std::vector<std::pair<std::string, std::string>> found;
    const std::string policy = "auto_wrap_policy";
    if (names_policy(arguments, policy)) {
      std::string why = why_nothing_wrapped(wrap_policy(arguments), *plan.network, policy);
      if (!why.empty()) {
        found.emplace_back(policy, std::move(why));
      }
    }
    return found;
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
    options.clips_by_own_norm = true;
    return std::make_unique<FullyShardedDataParallel>(plan, options);
  };
  return entry;
}

}  // namespace lockstep
