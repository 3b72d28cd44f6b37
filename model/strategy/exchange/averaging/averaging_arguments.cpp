#include "model/strategy/exchange/averaging/averaging_arguments.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "model/core/spelling.hpp"

namespace lockstep {

namespace {

constexpr const char* averager_argument = "model_averager";
constexpr const char* outer_argument = "outer_optimizer";
constexpr const char* steps_between = "model_averaging_period";
constexpr std::string_view averager_class = "HierarchicalModelAverager";
const std::string averager_prefix = "model_averager.HierarchicalModelAverager.";
const std::string sizes_prefix = averager_prefix + "period_group_size_dict.";
const std::string outer_prefix = "outer_optimizer.";

bool has_any(const StrategyArguments& arguments, const std::string& prefix) {
  return std::ranges::any_of(
      arguments.all(), [&](const auto& argument) { return argument.first.starts_with(prefix); });
}

void check_names(const StrategyArguments& arguments, const std::string& prefix,
                 const std::vector<std::string_view>& names, const std::string& what) {
  for (const auto& [whole, value] : arguments.all()) {
    if (!whole.starts_with(prefix)) {
      continue;
    }
    const std::string rest = whole.substr(prefix.size());
    const std::string name = rest.substr(0, rest.find('.'));
    if (std::ranges::find(names, name) == names.end()) {
      throw ArgumentProblem(fmt::format("{} has no argument `{}`", what, name), whole,
                            did_you_mean(name, names));
    }
  }
}

int64_t whole_number(const std::string& text, const std::string& argument) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    throw ArgumentProblem(fmt::format("a period is a number of steps, not `{}`", text), argument,
                          "write {4: 8, 16: 16}: every 4 steps groups of 8, every 16 steps all 16");
  }
  return number;
}

std::vector<AveragingLevel> levels_from(const StrategyArguments& arguments) {
  std::vector<AveragingLevel> levels;
  for (const auto& [whole, value] : arguments.all()) {
    if (!whole.starts_with(sizes_prefix)) {
      continue;
    }
    const AveragingLevel level = {whole_number(whole.substr(sizes_prefix.size()), whole),
                                  arguments.integer(whole, 1)};
    if (level.period < 1 || level.group_size < 1) {
      throw RefusedArgument(
          "ValueError: The minimum period in arg ``period_group_size_dict`` must be a positive "
          "value.",
          whole, "write periods and sizes of at least 1");
    }
    levels.push_back(level);
  }
  if (levels.empty()) {
    throw RefusedArgument("ValueError: Arg ``period_group_size_dict`` must not be empty.",
                          averager_argument,
                          "write {HierarchicalModelAverager: {period_group_size_dict: {2: 2, 4: "
                          "4}}}");
  }
  std::ranges::sort(levels, {}, &AveragingLevel::period);
  return levels;
}

void add_hierarchy(const StrategyArguments& arguments, AveragingOptions& options) {
  for (const auto& [whole, value] : arguments.all()) {
    const bool is_class =
        whole.starts_with("model_averager.") && !whole.starts_with(averager_prefix);
    const bool is_name = whole == averager_argument &&
                         arguments.text(averager_argument, "") != std::string(averager_class);
    if (is_class || is_name) {
      throw ArgumentProblem("`model_averager` can be a HierarchicalModelAverager alone", whole,
                            "for a PeriodicModelAverager give model_averaging_period and a "
                            "PostLocalSGDState as ddp_comm_state");
    }
  }
  check_names(arguments, averager_prefix, {"period_group_size_dict", "warmup_steps"},
              std::string(averager_class));
  options.levels = levels_from(arguments);
  options.warmup_steps = arguments.integer(averager_prefix + "warmup_steps", 0);
  if (options.warmup_steps < 0) {
    throw RefusedArgument("ValueError: Arg ``warmup_steps`` must be a non-negative number.",
                          averager_prefix + "warmup_steps");
  }
}

/// `outer_optimizer: {}`, with nothing but defaults.
bool is_empty_map(const StrategyArguments& arguments, const std::string& name) {
  const auto* texts = std::get_if<std::vector<std::string>>(arguments.find(name));
  return texts != nullptr && texts->empty();
}

void add_outer(const StrategyArguments& arguments, int64_t start_iteration,
               AveragingOptions& options) {
  check_names(arguments, outer_prefix, {"lr", "momentum", "nesterov"}, "the outer optimizer");
  OuterOptimizerOptions outer;
  outer.learning_rate = arguments.number(outer_prefix + "lr", outer.learning_rate);
  outer.momentum = arguments.number(outer_prefix + "momentum", outer.momentum);
  outer.nesterov = arguments.boolean(outer_prefix + "nesterov", outer.momentum != 0);
  if (!(outer.learning_rate > 0)) {
    throw ArgumentProblem("the learning rate of the outer optimizer must be above 0",
                          outer_prefix + "lr", "the paper of DiLoCo takes 0.7");
  }
  if (!(outer.momentum >= 0) || outer.momentum >= 1) {
    throw ArgumentProblem("the momentum of the outer optimizer must be in [0, 1)",
                          outer_prefix + "momentum", "the paper of DiLoCo takes 0.9");
  }
  if (outer.nesterov && outer.momentum == 0) {
    throw RefusedArgument("ValueError: Nesterov momentum requires a momentum and zero dampening",
                          outer_prefix + "nesterov", "give a momentum, or leave nesterov out");
  }
  if (!arguments.has(steps_between)) {
    throw ArgumentProblem("`outer_optimizer` needs a `model_averaging_period`", outer_argument,
                          "say how many inner steps lie between two outer ones");
  }
  const int64_t period = arguments.integer(steps_between, 1);
  if (period < 1) {
    throw ArgumentProblem("`model_averaging_period` must be at least 1", steps_between);
  }
  options.outer = outer;
  options.period = period;
  options.warmup_steps = start_iteration;
}

}  // namespace

bool arguments_name_averager(const StrategyArguments& arguments) {
  return arguments.has(averager_argument) || has_any(arguments, "model_averager.") ||
         arguments.has(outer_argument) || has_any(arguments, outer_prefix);
}

void add_averager(const StrategyArguments& arguments, int64_t start_iteration,
                  AveragingOptions& options) {
  const bool names_levels =
      arguments.has(averager_argument) || has_any(arguments, "model_averager.");
  const bool names_outer = arguments.has(outer_argument) || has_any(arguments, outer_prefix);
  if (arguments.has(outer_argument) && !is_empty_map(arguments, outer_argument)) {
    throw ArgumentProblem("`outer_optimizer` is a map", outer_argument,
                          "write {lr: 0.7, momentum: 0.9, nesterov: true}");
  }
  if (names_levels && (names_outer || arguments.has(steps_between))) {
    throw ArgumentProblem(fmt::format("`model_averager` and `{}` cannot be combined",
                                      names_outer ? outer_argument : steps_between),
                          names_outer ? outer_argument : steps_between, "leave one of them out");
  }
  if (names_levels) {
    add_hierarchy(arguments, options);
  }
  if (names_outer) {
    add_outer(arguments, start_iteration, options);
  }
}

}  // namespace lockstep
