#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/core/spelling.hpp"
#include "model/strategy/data_parallel/bagua/bagua.hpp"
#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

namespace {

using Names = std::vector<std::string_view>;

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
  const std::string name = arguments.text("algorithm", "gradient_allreduce");
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

int64_t at_least(const StrategyArguments& arguments, const std::string& name, int64_t otherwise,
                 int64_t least) {
  const int64_t value = arguments.integer(name, otherwise);
  if (value < least) {
    throw ArgumentProblem(
        "strategy argument " + name + " must be at least " + std::to_string(least), name);
  }
  return value;
}

Bytes bucket_size_of(const StrategyArguments& arguments) {
  constexpr double most_mebibytes = 1e9;
  const double mebibytes = arguments.number("bucket_size_mb", 10);
  if (!(mebibytes > 0) || mebibytes > most_mebibytes) {
    throw ArgumentProblem("strategy argument bucket_size_mb must be above 0, at most 1e9",
                          "bucket_size_mb");
  }
  return Bytes(static_cast<int64_t>(mebibytes * 1024 * 1024));
}

bool shifts_one(const StrategyArguments& arguments, const AlgorithmRow& row) {
  const std::string mode = arguments.text("peer_selection_mode", "all");
  const bool may_shift = row.algorithm == BaguaAlgorithm::decentralized;
  if (mode != "all" && (mode != "shift_one" || !may_shift)) {
    const Names known = may_shift ? Names{"all", "shift_one"} : Names{"all"};
    throw RefusedArgument(
        "the algorithm " + std::string(row.name) + " has no peer_selection_mode `" + mode + "`",
        "peer_selection_mode", may_shift ? did_you_mean(mode, known) : "its only mode is all");
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
  options.flatten = arguments.boolean("flatten", true);
  options.hierarchical = arguments.boolean("hierarchical", row.hierarchical);
  options.average = arguments.boolean("average", true);
  options.shift_one = shifts_one(arguments, row);
  options.communication_interval = at_least(arguments, "communication_interval", 1, 1);
  options.sync_interval_ms = at_least(arguments, "sync_interval_ms", 500, 1);
  options.warmup_steps = at_least(arguments, "warmup_steps", 0, 0);
  options.bucket_size = bucket_size_of(arguments);
  check_plan(plan, row.algorithm);
  return options;
}

}  // namespace

StrategyEntry bagua() {
  StrategyEntry entry;
  entry.name = "bagua";
  entry.class_name = "BaguaStrategy";
  entry.traits = {.needs_gpu = true};
  entry.arguments = {"algorithm",           "flatten",
                     "hierarchical",        "average",
                     "peer_selection_mode", "communication_interval",
                     "sync_interval_ms",    "warmup_steps",
                     "bucket_size_mb"};
  for (const std::string_view step : bagua_sites::every_step) {
    entry.sites.push_back({std::string(step), "", 0, 0, "", "", {}, ""});
  }
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<Bagua>(plan, options_from(plan, arguments));
  };
  return entry;
}

}  // namespace lockstep
