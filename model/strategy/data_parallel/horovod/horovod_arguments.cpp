#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "model/strategy/data_parallel/horovod/horovod.hpp"
#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
#include "model/strategy/data_parallel/horovod/optimizer_state_names.hpp"
#include "model/strategy/data_parallel/horovod/process_sets.hpp"
#include "model/strategy/exchange/first_weights.hpp"
#include "model/strategy/exchange/negotiation/negotiation_sites.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

// horovod/torch/optimizer.py; the last three are environment variables of Horovod.
constexpr std::array horovod_rows{
    StrategyArgument{"backward_passes_per_step", "int", "1",
                     "backwards that add up before a gradient is handed over"},
    StrategyArgument{"op", "text", "average",
                     "average or sum of gradients; adasum: of what the ranks' own steps change"},
    StrategyArgument{"gradient_predivide_factor", "float", "1.0",
                     "of the average: divides before the sum, and the rest after it"},
    StrategyArgument{"compression", "text", "none", "none, or fp16: gradients travel in 16 bits"},
    StrategyArgument{"num_groups", "int", "0",
                     "groups of gradients that are handed over together; 0: each by itself"},
    StrategyArgument{"process_sets", "list", "null",
                     "[[0, 1], [2, 3]]: ranks that average gradients among themselves alone",
                     ArgumentUse::strategy, "null: all ranks"},
    StrategyArgument{"broadcast_parameters", "bool", "true",
                     "hvd.broadcast_parameters at the start; false: a script that leaves it out"},
    StrategyArgument{"seed_everything", "bool", "false",
                     "all ranks draw the same parameters, as where the scenario has this key"},
    StrategyArgument{"cycle_time_ms", "float", "1.0",
                     "between two looks at what is ready (HOROVOD_CYCLE_TIME)"},
    StrategyArgument{"fusion_threshold_mb", "float", "128.0",
                     "MiB that are reduced in one call (HOROVOD_FUSION_THRESHOLD)"},
    StrategyArgument{"cache_capacity", "int", "1024",
                     "names that ranks agree on by one bit (HOROVOD_CACHE_CAPACITY)"},
};

constexpr std::string_view process_sets_argument = "process_sets";

ArgumentProblem process_set_problem(const std::string& message, const std::string& remedy) {
  return ArgumentProblem("process_sets: " + message, std::string(process_sets_argument), remedy);
}

RefusedArgument refused_process_set(const std::string& message, const std::string& remedy) {
  return RefusedArgument(message, std::string(process_sets_argument), remedy);
}

/// "[0, 1]"
std::vector<int64_t> process_set_from(const std::string& text) {
  std::vector<int64_t> ranks;
  const bool is_list = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (is_list && at < end) {
    int64_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (behind != end && *behind != ',')) {
      throw process_set_problem(text + " is not a list of ranks", "write [[0, 1], [2, 3]]");
    }
    ranks.push_back(number);
    at = behind;
    while (at != end && (*at == ',' || *at == ' ')) {
      ++at;
    }
  }
  if (!is_list) {
    throw process_set_problem(text + " is not a list of ranks", "write [[0, 1], [2, 3]]");
  }
  if (ranks.empty()) {
    throw process_set_problem("a set without ranks", "leave the empty set out");
  }
  std::ranges::sort(ranks);
  return ranks;
}

// What hvd.init refuses: horovod/common/operations.cc and basics.py.
void check_process_set(const TrainingPlan& plan, const std::vector<int64_t>& ranks) {
  const auto twice = std::ranges::adjacent_find(ranks);
  if (twice != ranks.end()) {
    throw refused_process_set(
        fmt::format("ValueError: Horovod could not be initialized: Tried to register process set "
                    "with duplicate rank: {}",
                    *twice),
        "name each rank once");
  }
  const auto is_outside = [&plan](int64_t rank) { return rank < 0 || rank >= plan.world_size; };
  const auto outside = std::ranges::find_if(ranks, is_outside);
  if (plan.world_size > 0 && outside != ranks.end()) {
    throw refused_process_set(
        fmt::format("ValueError: Horovod could not be initialized: Tried to register process set "
                    "with invalid rank: {}",
                    *outside),
        fmt::format("name ranks from 0 to {}", plan.world_size - 1));
  }
  if (plan.world_size > 1 && std::ssize(ranks) == plan.world_size) {
    throw refused_process_set(
        "ValueError: Horovod could not be initialized: Different ranks tried to set up mismatching "
        "numbers of process sets: the set of all ranks exists already",
        "leave process_sets out: all ranks average their gradients without it");
  }
}

std::vector<std::vector<int64_t>> checked_process_sets(const TrainingPlan& plan,
                                                       const StrategyArguments& arguments) {
  const std::vector<std::vector<int64_t>> sets = process_sets_of(arguments);
  std::set<int64_t> before;
  for (auto set = sets.begin(); set != sets.end(); ++set) {
    check_process_set(plan, *set);
    if (std::find(sets.begin(), set, *set) != set) {
      throw refused_process_set(
          fmt::format("ValueError: Horovod could not be initialized because process_sets entry "
                      "number {} is a duplicate",
                      set - sets.begin()),
          "name each set once");
    }
    for (const int64_t rank : *set) {
      if (!before.insert(rank).second) {
        throw process_set_problem(
            fmt::format("rank {} is in two sets, and its optimizer averages in one", rank),
            "name each rank in one set");
      }
    }
  }
  return sets;
}

// DistributedOptimizer and its broadcast of names from rank 0 (horovod/torch/optimizer.py).
void check_with_process_sets(const HorovodOptions& options) {
  if (options.process_sets.empty()) {
    return;
  }
  if (options.combines_steps) {
    throw refused_process_set(
        "NotImplementedError: Adasum does not support non-global process sets yet.",
        "use op: average, or leave process_sets out");
  }
  const auto lacks_root = [](const std::vector<int64_t>& set) { return set.front() != 0; };
  if (options.groups > 0 && std::ranges::any_of(options.process_sets, lacks_root)) {
    throw refused_process_set(
        "ValueError: broadcast received invalid root rank 0 for provided process set: num_groups "
        "makes each set take the order of names from rank 0",
        "leave num_groups out, or name only a set with rank 0");
  }
}

constexpr double most_mebibytes = 1e6;
constexpr double most_milliseconds = 1e6;

double number_from(const StrategyArgumentReader& read, const std::string& name, double most) {
  const double value = read.number(name);
  if (!(value >= 0) || value > most) {
    throw ArgumentProblem("strategy argument " + name + " must be at least 0", name);
  }
  return value;
}

// horovod/torch/optimizer.py
void check_predivision(const HorovodOptions& options) {
  if (options.predivide_factor != 1 && (options.sums || options.combines_steps)) {
    throw RefusedArgument("ValueError: gradient_predivide_factor not supported with op != Average",
                          "gradient_predivide_factor", "leave it out");
  }
}

// Over Gloo no Adasum operation is registered (common/operations.cc).
void check_adasum(const TrainingPlan& plan, const HorovodOptions& options) {
  if (!plan.autocast_of_cuda) {
    throw RefusedArgument("RuntimeError: No Adasum operation enabled: on CPUs it needs MPI", "op",
                          "use op: average, or GPUs");
  }
  if (plan.node_ranks < 0) {  // its averages within a host and its pairs of hosts
    throw UnmodelledArgument("Adasum on hosts with different numbers of processes is not modelled",
                             "op", "give every host as many processes, or use op: average");
  }
  if (plan.activation_dtype == DType::fp16 && plan.parameter_dtype == DType::fp32) {
    throw UnmodelledArgument(
        "op: adasum with a GradScaler is not modelled: hooks of the backward take the steps, by "
        "gradients that the scaler has not divided yet",
        "op", "use precision: bf16 or 32, or op: average");
  }
  if (options.in_half_precision) {
    throw UnmodelledArgument("compression: fp16 with op: adasum is not modelled", "compression",
                             "leave one of them out");
  }
}

HorovodOptions horovod_options_from(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const StrategyArgumentReader read(arguments, horovod_rows);
  HorovodOptions options;
  options.passes_per_step = read.integer("backward_passes_per_step");
  if (options.passes_per_step < 1) {
    throw ArgumentProblem("strategy argument backward_passes_per_step must be at least 1",
                          "backward_passes_per_step");
  }
  options.groups = read.integer("num_groups");
  if (options.groups < 0) {
    throw ArgumentProblem("strategy argument num_groups must be at least 0", "num_groups");
  }
  const std::string op = read.text("op");
  if (op != "average" && op != "sum" && op != "adasum") {
    throw ArgumentProblem("strategy argument op must be average, sum or adasum", "op");
  }
  options.sums = op == "sum";
  const std::string compression = read.text("compression");
  if (compression != "none" && compression != "fp16") {
    throw ArgumentProblem("strategy argument compression must be none or fp16", "compression");
  }
  options.in_half_precision = compression == "fp16";
  options.predivide_factor = read.number("gradient_predivide_factor");
  if (!(options.predivide_factor > 0)) {
    throw ArgumentProblem("strategy argument gradient_predivide_factor must be above 0",
                          "gradient_predivide_factor");
  }
  options.fusion_threshold = Bytes(
      static_cast<int64_t>(number_from(read, "fusion_threshold_mb", most_mebibytes) * 1024 * 1024));
  options.cycle_time =
      Time(static_cast<int64_t>(number_from(read, "cycle_time_ms", most_milliseconds) * 1e9));
  options.cache_capacity = read.integer("cache_capacity");
  if (options.cache_capacity < 0) {
    throw ArgumentProblem("strategy argument cache_capacity must be at least 0", "cache_capacity");
  }
  options.combines_steps = op == "adasum";
  options.broadcasts_parameters = read.boolean("broadcast_parameters");
  options.seeded_alike = arguments.boolean(std::string(seeded_alike_argument), false);
  options.process_sets = checked_process_sets(plan, arguments);
  check_with_process_sets(options);
  check_predivision(options);
  if (options.combines_steps) {
    check_adasum(plan, options);
  }
  return options;
}

std::vector<Site> sites_of_names(const TrainingPlan& plan) {
  std::vector<Site> sites;
  for (const std::string& state : names_of_optimizer_states(plan)) {
    Site& site = sites.emplace_back(step_called("horovod: " + broadcast_name(state)));
    site.met_by_name = broadcast_name(state);
  }
  for (const ParameterPlace place : plan.network->parameters()) {
    for (const bool in_group : {false, true}) {
      const std::string name = gradient_name(*plan.network, place, in_group);
      Site& site = sites.emplace_back(step_called("horovod: " + name));
      site.met_by_name = name;
    }
  }
  return sites;
}

}  // namespace

std::vector<std::vector<int64_t>> process_sets_of(const StrategyArguments& arguments) {
  std::vector<std::vector<int64_t>> sets;
  if (arguments.has(std::string(process_sets_argument))) {
    for (const std::string& text : arguments.texts(std::string(process_sets_argument))) {
      sets.push_back(process_set_from(text));
    }
  }
  return sets;
}

StrategyEntry horovod() {
  StrategyEntry entry;
  entry.name = "horovod";
  entry.class_name = "HorovodStrategy";
  entry.arguments.assign(horovod_rows.begin(), horovod_rows.end());
  entry.traits.gathers_rows = true;
  entry.traits.loss_scaling = LossScaling::of_trainer;
  constexpr double mebibyte = 1024 * 1024;
  entry.variables = {{"HOROVOD_FUSION_THRESHOLD", "fusion_threshold_mb", mebibyte},
                     {"HOROVOD_CYCLE_TIME", "cycle_time_ms", 1},
                     {"HOROVOD_CACHE_CAPACITY", "cache_capacity", 0}};
  add_steps(negotiation_sites::every_step, entry.sites);
  add_steps(horovod_sites::every_step, entry.sites);
  entry.sites_of_plan = sites_of_names;
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<Horovod>(plan, horovod_options_from(plan, arguments));
  };
  return entry;
}

}  // namespace lockstep
