#include <array>

#include "model/strategy/data_parallel/horovod/horovod.hpp"
#include "model/strategy/data_parallel/horovod/horovod_sites.hpp"
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
                     "average: of gradients; adasum: of what the ranks' own steps change"},
    StrategyArgument{"gradient_predivide_factor", "float", "1.0",
                     "of the average: divides before the sum, and the rest after it"},
    StrategyArgument{"compression", "text", "none", "none, or fp16: gradients travel in 16 bits"},
    StrategyArgument{"num_groups", "int", "0",
                     "groups of gradients that are handed over together; 0: each by itself"},
    StrategyArgument{"cycle_time_ms", "float", "1.0",
                     "between two looks at what is ready (HOROVOD_CYCLE_TIME)"},
    StrategyArgument{"fusion_threshold_mb", "float", "128.0",
                     "MiB that are reduced in one call (HOROVOD_FUSION_THRESHOLD)"},
    StrategyArgument{"cache_capacity", "int", "1024",
                     "names that ranks agree on by one bit (HOROVOD_CACHE_CAPACITY)"},
};

constexpr double most_mebibytes = 1e6;
constexpr double most_milliseconds = 1e6;

double number_from(const StrategyArgumentReader& read, const std::string& name, double most) {
  const double value = read.number(name);
  if (!(value >= 0) || value > most) {
    throw ArgumentProblem("strategy argument " + name + " must be at least 0", name);
  }
  return value;
}

// horovod/torch/optimizer.py; over Gloo no Adasum operation is registered (common/operations.cc).
void check_adasum(const TrainingPlan& plan, const HorovodOptions& options) {
  if (!plan.autocast_of_cuda) {
    throw RefusedArgument("RuntimeError: No Adasum operation enabled: on CPUs it needs MPI", "op",
                          "use op: average, or GPUs");
  }
  if (options.predivide_factor != 1) {
    throw RefusedArgument("ValueError: gradient_predivide_factor not supported with op != Average",
                          "gradient_predivide_factor", "leave it out");
  }
  if (options.in_half_precision) {
    throw UnmodelledArgument("compression: fp16 with op: adasum is not modelled", "compression",
                             "leave one of them out");
  }
}

HorovodOptions options_from(const TrainingPlan& plan, const StrategyArguments& arguments) {
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
  if (op != "average" && op != "adasum") {
    throw ArgumentProblem("strategy argument op must be average or adasum", "op");
  }
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
  if (options.combines_steps) {
    check_adasum(plan, options);
  }
  return options;
}

std::vector<Site> sites_of_gradients(const TrainingPlan& plan) {
  std::vector<Site> sites;
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

StrategyEntry horovod() {
  StrategyEntry entry;
  entry.name = "horovod";
  entry.class_name = "HorovodStrategy";
  entry.arguments.assign(horovod_rows.begin(), horovod_rows.end());
  constexpr double mebibyte = 1024 * 1024;
  entry.variables = {{"HOROVOD_FUSION_THRESHOLD", "fusion_threshold_mb", mebibyte},
                     {"HOROVOD_CYCLE_TIME", "cycle_time_ms", 1},
                     {"HOROVOD_CACHE_CAPACITY", "cache_capacity", 0}};
  add_steps(negotiation_sites::every_step, entry.sites);
  add_steps(horovod_sites::every_step, entry.sites);
  entry.sites_of_plan = sites_of_gradients;
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<Horovod>(plan, options_from(plan, arguments));
  };
  return entry;
}

}  // namespace lockstep
