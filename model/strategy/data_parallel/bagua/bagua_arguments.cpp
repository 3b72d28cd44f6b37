#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/core/spelling.hpp"
#include "model/strategy/data_parallel/bagua/bagua.hpp"
#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/registry.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

using Names = std::vector<std::string_view>;

// pytorch_lightning/strategies/bagua.py, bagua/torch_api/algorithms.
constexpr std::array bagua_rows{
    StrategyArgument{"algorithm", "text", "gradient_allreduce",
                     "how replicas exchange: gradients or weights, whole or compressed"},
    StrategyArgument{"flatten", "bool", "true",
                     "gradients or weights of a bucket lie side by side"},
    StrategyArgument{"hierarchical", "bool", "null", "nodes exchange through their first rank",
                     ArgumentUse::strategy, "false for gradient_allreduce and async, else true"},
    StrategyArgument{"average", "bool", "true",
                     "of gradient_allreduce and bytegrad: the mean of gradients, not their sum"},
    StrategyArgument{"peer_selection_mode", "text", "all",
                     "of decentralized: all, or shift_one, where two ranks exchange at a time"},
    StrategyArgument{"communication_interval", "int", "1",
                     "of decentralized algorithms: steps from one exchange to the next"},
    StrategyArgument{"sync_interval_ms", "int", "500",
                     "of async: pause between two averages of the weights"},
    StrategyArgument{"warmup_steps", "int", "0",
                     "of async: steps that exchange gradients before averages begin"},
    StrategyArgument{"bucket_size_mb", "float", "10", "MiB in a bucket"},
    StrategyArgument{"q_adam_optimizer", "", "null",
                     "Lightning takes it from the module's optimizer", ArgumentUse::unmodelled},
    process_group_backend,
};

/// An algorithm of Bagua with the arguments that its class takes.
struct AlgorithmRow {
  std::string_view name;
  BaguaAlgorithm algorithm;
  bool hierarchical;  ///< its default
  Names arguments;
};

const std::vector<AlgorithmRow>& algorithms() {
  static const std::vector<AlgorithmRow> rows = {
      {"gradient_allreduce",
       BaguaAlgorithm::gradient_allreduce,
       false,
       {"hierarchical", "average"}},
      {"bytegrad", BaguaAlgorithm::bytegrad, true, {"hierarchical", "average"}},
      {"decentralized",
       BaguaAlgorithm::decentralized,
       true,
       {"hierarchical", "peer_selection_mode", "communication_interval"}},
      {"low_precision_decentralized",
       BaguaAlgorithm::low_precision_decentralized,
       true,
       {"hierarchical", "communication_interval"}},
      {"qadam", BaguaAlgorithm::qadam, true, {"hierarchical"}},
      {"async",
       BaguaAlgorithm::async,
       false,
       {"peer_selection_mode", "sync_interval_ms", "warmup_steps"}},
  };
  return rows;
}

const AlgorithmRow& algorithm_of(const StrategyArguments& arguments) {
  const std::string name = StrategyArgumentReader(arguments, bagua_rows).text("algorithm");
  Names names;
  for (const AlgorithmRow& row : algorithms()) {
    if (row.name == name) {
      return row;
    }
    names.push_back(row.name);
  }
  throw RefusedArgument("Bagua has no algorithm `" + name + "`", "algorithm",
                        did_you_mean(name, names));
}

// The algorithm's class is called with all that BaguaStrategy does not know.
void refuse_foreign_arguments(const StrategyArguments& arguments, const AlgorithmRow& row) {
  const auto is_of_strategy = [](std::string_view name) {
    return name == "algorithm" || name == "flatten" || name == "bucket_size_mb" ||
           name == "process_group_backend" || name == "timeout";
  };
  for (const auto& [name, value] : arguments.all()) {
    if (is_of_strategy(name) || std::ranges::count(row.arguments, name) != 0) {
      continue;
    }
    std::string known;
    for (const std::string_view each : row.arguments) {
      known += (known.empty() ? "" : ", ") + std::string(each);
    }
    throw RefusedArgument(
        "the algorithm " + std::string(row.name) + " has no argument `" + name + "`", name,
        "it takes " + known);
  }
}

int64_t at_least(const StrategyArgumentReader& read, const std::string& name, int64_t least) {
  const int64_t value = read.integer(name);
  if (value < least) {
    throw ArgumentProblem(
        "strategy argument " + name + " must be at least " + std::to_string(least), name);
  }
  return value;
}

Bytes bucket_size_of(const StrategyArgumentReader& read) {
  constexpr double most_mebibytes = 1e9;
  const double mebibytes = read.number("bucket_size_mb");
  if (!(mebibytes > 0) || mebibytes > most_mebibytes) {
    throw ArgumentProblem("strategy argument bucket_size_mb must be above 0, at most 1e9",
                          "bucket_size_mb");
  }
  return Bytes(static_cast<int64_t>(mebibytes * 1024 * 1024));
}

bool shifts_one(const StrategyArgumentReader& read, const AlgorithmRow& row) {
  const std::string mode = read.text("peer_selection_mode");
  const bool may_shift = row.algorithm == BaguaAlgorithm::decentralized;
  if (mode != "all" && (mode != "shift_one" || !may_shift)) {
    const Names known = may_shift ? Names{"all", "shift_one"} : Names{"all"};
    const std::string close = did_you_mean(mode, known);
    const std::string modes =
        may_shift ? "its modes are all and shift_one" : "its only mode is all";
    throw RefusedArgument(
        "the algorithm " + std::string(row.name) + " has no peer_selection_mode `" + mode + "`",
        "peer_selection_mode", may_shift && !close.empty() ? close : modes);
  }
  return mode == "shift_one";
}

// BaguaStrategy._check_qadam_optimizer.
void check_qadam(const TrainingPlan& plan) {
  if (plan.optimizers.size() != 1 || plan.optimizers.front().kind != OptimizerKind::qadam) {
    throw RefusedArgument("Bagua QAdam can only accept one QAdamOptimizer and one LR Scheduler",
                          "algorithm", "write optimizer: {QAdamOptimizer: {lr: 1e-3}}");
  }
}

// LowPrecisionDecentralizedAlgorithm.init_tensors.
void check_all_are_updated(const TrainingPlan& plan) {
  for (const ParameterPlace place : plan.network->parameters()) {
    const bool is_held = std::ranges::any_of(plan.optimizers, [&](const OptimizerPlan& optimizer) {
      return optimizer.holds(place.layer);
    });
    if (plan.network->parameter(place).trainable && !is_held) {
      throw RefusedArgument("module parameter of `" + plan.network->layers[place.layer].name +
                                "` is not used by your optimizer(s), need to exclude it from Bagua",
                            "algorithm",
                            "give it to an optimizer, or freeze it (trainable: false)");
    }
  }
}

void check_plan(const TrainingPlan& plan, BaguaAlgorithm algorithm) {
  const bool compresses = algorithm == BaguaAlgorithm::bytegrad ||
                          algorithm == BaguaAlgorithm::qadam ||
                          algorithm == BaguaAlgorithm::low_precision_decentralized;
  if (compresses && plan.parameter_dtype != DType::fp32 && plan.parameter_dtype != DType::fp16) {
    throw RefusedArgument(
        "MinMaxUInt8 compresses fp32 and fp16, not " + std::string(name_of(plan.parameter_dtype)),
        "algorithm", "use precision: 32, or the algorithm gradient_allreduce");
  }
  if (algorithm == BaguaAlgorithm::qadam) {
    check_qadam(plan);
  }
  if (algorithm == BaguaAlgorithm::low_precision_decentralized) {
    check_all_are_updated(plan);
  }
}

BaguaOptions options_from(const TrainingPlan& plan, const StrategyArguments& arguments) {
  const AlgorithmRow& row = algorithm_of(arguments);
  refuse_foreign_arguments(arguments, row);
  BaguaOptions options;
  options.algorithm = row.algorithm;
  const StrategyArgumentReader read(arguments, bagua_rows);
  options.flatten = read.boolean("flatten");
  options.hierarchical = arguments.boolean("hierarchical", row.hierarchical);
  options.average = read.boolean("average");
  options.shift_one = shifts_one(read, row);
  options.communication_interval = at_least(read, "communication_interval", 1);
  options.sync_interval_ms = at_least(read, "sync_interval_ms", 1);
  options.warmup_steps = at_least(read, "warmup_steps", 0);
  options.bucket_size = bucket_size_of(read);
  check_plan(plan, row.algorithm);
  return options;
}

}  // namespace

StrategyEntry bagua() {
  StrategyEntry entry;
  entry.name = "bagua";
  entry.class_name = "BaguaStrategy";
  entry.traits = {.needs_gpu = true, .loss_scaling = LossScaling::of_trainer};
  entry.arguments.assign(bagua_rows.begin(), bagua_rows.end());
  add_steps(bagua_sites::every_step, entry.sites);
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<Bagua>(plan, options_from(plan, arguments));
  };
  return entry;
}

}  // namespace lockstep
