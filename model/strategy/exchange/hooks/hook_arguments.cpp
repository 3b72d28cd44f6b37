#include "model/strategy/exchange/hooks/hook_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "model/core/spelling.hpp"
#include "model/strategy/exchange/averaging/averaging_arguments.hpp"

namespace lockstep {

namespace {

using Kind = HookOptions::Kind;
using Names = std::vector<std::string_view>;

constexpr const char* hook_argument = "ddp_comm_hook";
constexpr const char* state_argument = "ddp_comm_state";
constexpr const char* wrapper_argument = "ddp_comm_wrapper";
constexpr const char* period_argument = "model_averaging_period";
constexpr std::string_view state_prefix = "ddp_comm_state.";

/// The classes of torch that are states of hooks.
enum class State : uint8_t { none, power_sgd, post_local_sgd };

struct Hook {
  std::string_view name;
  Kind kind;
  DType narrow = DType::fp16;
  State state = State::none;
  bool is_batched = false;
};

constexpr auto hooks = std::to_array<Hook>({
    {"allreduce_hook", Kind::all_reduce},
    {"fp16_compress_hook", Kind::cast},
    {"bf16_compress_hook", Kind::cast, DType::bf16},
    {"powerSGD_hook", Kind::power_sgd, DType::fp16, State::power_sgd},
    {"batched_powerSGD_hook", Kind::power_sgd, DType::fp16, State::power_sgd, true},
    {"post_localSGD_hook", Kind::post_local_sgd, DType::fp16, State::post_local_sgd},
    {"noop_hook", Kind::noop},
});

const Names wrappers = {"fp16_compress_wrapper", "bf16_compress_wrapper"};
const Names quantization_hooks = {"quantization_pertensor_hook", "quantization_perchannel_hook"};

const Names of_both = {"process_group"};
const Names of_power_sgd = {"matrix_approximation_rank",
                            "start_powerSGD_iter",
                            "min_compression_rate",
                            "use_error_feedback",
                            "warm_start",
                            "orthogonalization_epsilon",
                            "random_seed",
                            "compression_stats_logging_frequency",
                            "batch_tensors_with_same_shape"};
const Names of_post_local_sgd = {"subgroup", "start_localSGD_iter",
                                 "post_local_gradient_allreduce"};

std::string_view class_of(State state) {
  return state == State::power_sgd ? "PowerSGDState" : "PostLocalSGDState";
}

bool is_one_of(std::string_view name, const Names& names) {
  return std::ranges::find(names, name) != names.end();
}

// A script names what it has imported: default_hooks.fp16_compress_hook.
std::string last_name(const std::string& text) { return text.substr(text.rfind('.') + 1); }

/// The state that a scenario describes: its class, and where its arguments stand.
struct DescribedState {
  State state = State::none;
  std::string prefix{state_prefix};
  std::string first{};  ///< an argument that only this class has
};

std::optional<State> state_named(std::string_view name) {
  for (const State state : {State::power_sgd, State::post_local_sgd}) {
    if (name == class_of(state)) {
      return state;
    }
  }
  return std::nullopt;
}

// Of "PowerSGDState.warm_start" and "powerSGD_hook.PowerSGDState.warm_start" the class; `init_args`
// beside a `class_path`; empty where the arguments stand by themselves.
std::string head_of(const std::string& rest) {
  if (rest == "class_path" || rest.starts_with("init_args.")) {
    return "init_args";
  }
  for (const State state : {State::power_sgd, State::post_local_sgd}) {
    const std::string name(class_of(state));
    const size_t at = rest.find(name);
    const size_t end = at + name.size();
    const bool begins = at == 0 || (at != std::string::npos && rest[at - 1] == '.');
    if (begins && (end == rest.size() || rest[end] == '.')) {
      return rest.substr(0, end);
    }
  }
  return "";
}

[[noreturn]] void unknown_state_argument(const std::string& whole, const std::string& name) {
  Names all = of_both;
  all.insert(all.end(), of_power_sgd.begin(), of_power_sgd.end());
  all.insert(all.end(), of_post_local_sgd.begin(), of_post_local_sgd.end());
  throw ArgumentProblem(
      fmt::format("neither PowerSGDState nor PostLocalSGDState has an argument `{}`", name), whole,
      nearest_spelling(name, all).empty()
          ? fmt::format("their arguments are {}", fmt::join(all, ", "))
          : did_you_mean(name, all));
}

void take_argument(const std::string& whole, const std::string& name, DescribedState& described) {
  if (is_one_of(name, of_both)) {
    return;
  }
  const bool powers = is_one_of(name, of_power_sgd);
  if (!powers && !is_one_of(name, of_post_local_sgd)) {
    unknown_state_argument(whole, name);
  }
  const State state = powers ? State::power_sgd : State::post_local_sgd;
  if (described.state != State::none && described.state != state) {
    throw ArgumentProblem(fmt::format("`{}` is an argument of {}, and this is a {}", name,
                                      class_of(state), class_of(described.state)),
                          whole, fmt::format("give the arguments of one of them"));
  }
  described.state = state;
  described.first = described.first.empty() ? whole : described.first;
}

DescribedState described_state(const StrategyArguments& arguments) {
  DescribedState described;
  if (arguments.has(state_argument)) {
    const std::string text = last_name(arguments.text(state_argument, ""));
    const std::optional<State> named = state_named(text);
    if (!named) {
      throw ArgumentProblem(fmt::format("`ddp_comm_state` cannot be `{}`", text), state_argument,
                            "write the arguments of PowerSGDState or PostLocalSGDState as a map");
    }
    described.state = *named;
    described.first = state_argument;
    return described;
  }
  for (const auto& [whole, value] : arguments.all()) {
    if (!whole.starts_with(state_prefix)) {
      continue;
    }
    const std::string rest = whole.substr(state_prefix.size());
    const std::string head = head_of(rest);
    if (head.empty()) {
      take_argument(whole, rest, described);
      continue;
    }
    described.prefix = std::string(state_prefix) + head + ".";
    const std::string name = rest == "class_path" ? arguments.text(whole, "") : head;
    if (const std::optional<State> named = state_named(last_name(name))) {
      described.state = *named;
      described.first = whole;
    } else if (rest == "class_path") {
      throw ArgumentProblem(fmt::format("`ddp_comm_state` cannot be `{}`", name), whole,
                            "name PowerSGDState or PostLocalSGDState");
    }
    if (rest.starts_with(head + ".")) {
      take_argument(whole, rest.substr(head.size() + 1), described);
    }
  }
  return described;
}

void refuse_groups(const StrategyArguments& arguments, const std::string& prefix) {
  for (const char* name : {"process_group", "subgroup"}) {
    if (arguments.has(prefix + name)) {
      throw UnmodelledArgument(
          fmt::format("`{}` of a hook's state is not modelled: all ranks are one group, and those "
                      "of a node the other",
                      name),
          prefix + name, "leave it out");
    }
  }
}

PowerSgdOptions power_sgd_from(const StrategyArguments& arguments, const std::string& prefix) {
  PowerSgdOptions options;
  options.rank = arguments.integer(prefix + "matrix_approximation_rank", options.rank);
  options.start_iteration =
      arguments.integer(prefix + "start_powerSGD_iter", options.start_iteration);
  options.min_compression_rate =
      arguments.number(prefix + "min_compression_rate", options.min_compression_rate);
  options.use_error_feedback = arguments.boolean(prefix + "use_error_feedback", true);
  options.warm_start = arguments.boolean(prefix + "warm_start", true);
  options.batches_alike = arguments.boolean(prefix + "batch_tensors_with_same_shape", false);
  // It says how often statistics are printed.
  arguments.integer(prefix + "compression_stats_logging_frequency", 10'000);
  options.orthogonalization_epsilon = arguments.number(prefix + "orthogonalization_epsilon", 0);
  options.random_seed = static_cast<uint64_t>(arguments.integer(prefix + "random_seed", 0));
  if (options.rank < 1) {
    throw ArgumentProblem("`matrix_approximation_rank` must be at least 1",
                          prefix + "matrix_approximation_rank");
  }
  if ((options.use_error_feedback || options.warm_start) && options.start_iteration <= 1) {
    throw RefusedArgument(
        "ValueError: Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
        "enabled, because PowerSGD can only be applied after the first two iterations in DDP.",
        prefix + "start_powerSGD_iter",
        "start at 2 or later: DDP makes its buckets anew before the second iteration, and what is "
        "kept of a bucket no longer fits");
  }
  return options;
}

PostLocalSgdOptions post_local_sgd_from(const StrategyArguments& arguments,
                                        const std::string& prefix) {
  const std::string start = prefix + "start_localSGD_iter";
  if (!arguments.has(start)) {
    throw RefusedArgument(
        "TypeError: PostLocalSGDState.__init__() missing 1 required positional argument: "
        "'start_localSGD_iter'",
        state_argument, "say how many iterations exchange gradients among all ranks first");
  }
  PostLocalSgdOptions options;
  options.start_iteration = arguments.integer(start, 0);
  options.reduces_gradients_locally =
      arguments.boolean(prefix + "post_local_gradient_allreduce", true);
  if (options.start_iteration < 0) {
    throw RefusedArgument("ValueError: Arg ``warmup_steps`` must be a non-negative number.", start);
  }
  return options;
}

const Hook* hook_named(const std::string& name) {
  const auto found = std::ranges::find(hooks, name, &Hook::name);
  return found == hooks.end() ? nullptr : &*found;
}

// "fp16_hook" is nearer to fp16_compress_hook than its letters say: their first words are one.
std::string what_hooks_there_are(const std::string& name, const Names& all) {
  std::string near = did_you_mean(name, all);
  const std::string first_word = name.substr(0, name.find('_') + 1);
  for (size_t i = 0; near.empty() && !first_word.empty() && i < all.size(); ++i) {
    near = all[i].starts_with(first_word) ? fmt::format("did you mean `{}`?", all[i]) : "";
  }
  return fmt::format("{}{} {}", near, near.empty() ? "the hooks are" : " The hooks are",
                     fmt::join(all, ", "));
}

const Hook& hook_of(const std::string& text) {
  const std::string name = last_name(text);
  if (is_one_of(name, quantization_hooks)) {
    throw UnmodelledArgument(
        fmt::format("`{}` is not modelled: torch's own raises without CUDA, where nothing of it "
                    "could be recorded",
                    name),
        hook_argument, "fp16_compress_hook and powerSGD_hook also send less");
  }
  const Hook* hook = hook_named(name);
  if (hook == nullptr) {
    Names all;
    for (const Hook& each : hooks) {
      all.push_back(each.name);
    }
    all.insert(all.end(), quantization_hooks.begin(), quantization_hooks.end());
    throw ArgumentProblem(fmt::format("there is no communication hook `{}`", name), hook_argument,
                          what_hooks_there_are(name, all));
  }
  return *hook;
}

void check_state(const Hook& hook, const DescribedState& described) {
  if (described.state == State::none || described.state == hook.state || hook.kind == Kind::noop) {
    return;
  }
  const std::string takes =
      hook.state == State::none ? "no such state" : fmt::format("a {}", class_of(hook.state));
  throw ArgumentProblem(fmt::format("`ddp_comm_state` is a {}, and {} takes {}",
                                    class_of(described.state), hook.name, takes),
                        described.first,
                        "give each hook its own state, or leave ddp_comm_state out");
}

void set_averaging(const StrategyArguments& arguments, HookOptions& options) {
  if (!arguments.has(period_argument)) {
    throw RefusedArgument(
        "ValueError: Post-localSGD algorithm is used, but model averaging period is not provided "
        "to DDP strategy.",
        state_argument, "give model_averaging_period, the steps between two averagings");
  }
  const int64_t period = arguments.integer(period_argument, 1);
  if (period < 1) {
    throw RefusedArgument("ValueError: Arg ``period`` must be a positive value.", period_argument,
                          "write the steps between two averagings: 1 or more");
  }
  options.averaging.period = period;
  options.averaging.warmup_steps = options.post_local_sgd.start_iteration;
}

}  // namespace

HookOptions hook_options_from(const StrategyArguments& arguments) {
  HookOptions options;
  arguments.integer(period_argument, 1);  // also where nothing averages: it is a number
  const DescribedState described = described_state(arguments);
  refuse_groups(arguments, described.prefix);
  if (arguments.has(hook_argument)) {
    const Hook& hook = hook_of(arguments.text(hook_argument, ""));
    check_state(hook, described);
    options.kind = hook.kind;
    options.name = hook.name;
    options.narrow = hook.narrow;
    options.has_state = described.state == hook.state;
    options.power_sgd.is_batched = hook.is_batched;
  }
  if (arguments.has(wrapper_argument)) {
    const std::string wrapper = last_name(arguments.text(wrapper_argument, ""));
    if (!is_one_of(wrapper, wrappers)) {
      throw ArgumentProblem(fmt::format("there is no wrapper of hooks `{}`", wrapper),
                            wrapper_argument, did_you_mean(wrapper, wrappers));
    }
    options.wrapper = wrapper.starts_with("bf16") ? DType::bf16 : DType::fp16;
  }
  if (described.state == State::power_sgd) {
    const bool is_batched = options.power_sgd.is_batched;
    options.power_sgd = power_sgd_from(arguments, described.prefix);
    options.power_sgd.is_batched = is_batched;
  } else if (described.state == State::post_local_sgd) {
    options.post_local_sgd = post_local_sgd_from(arguments, described.prefix);
    if (!arguments_name_averager(arguments)) {
      set_averaging(arguments, options);
    }
  }
  add_averager(arguments, options.post_local_sgd.start_iteration, options.averaging);
  return options;
}

}  // namespace lockstep
