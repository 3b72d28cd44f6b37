#include "rehearsal/findings/logged_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "model/metric/averaging.hpp"
#include "model/scenario/expressions_of.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/logged_origin.hpp"
#include "rehearsal/findings/logger_keys.hpp"
#include "rehearsal/findings/program_bindings.hpp"
#include "rehearsal/findings/stale_names.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

std::string name_of_metric(const std::string& class_name) {
  return class_name == "RootMeanSquaredError" ? "a root"
         : class_name == "exp"                ? "an exponential"
         : class_name == "log"                ? "a logarithm"
                                              : class_name;
}

void add_rule(const Origin& origin, bool is_mean, GlobalMetric& metric) {
  const std::optional<Averaging> averaging = averaging_of(origin.class_name, origin.is_micro);
  if (averaging) {
    metric.rule = text_of(*averaging, name_of_metric(origin.class_name));
    if (origin.class_name == "exp" || origin.class_name == "log") {
      metric.remedy =
          fmt::format("log what `{}` is taken of, with sync_dist: true, and take it once of that",
                      origin.class_name);
      return;
    }
    const std::string declaration = origin.class_name == "RootMeanSquaredError"
                                        ? "{MeanSquaredError: {squared: false}}"
                                    : origin.declaration.empty() ? origin.class_name
                                                                 : origin.declaration;
    metric.remedy = fmt::format(
        "log the object: metrics: {{m: {}}}, - update: {}, - log: {{name: {}, value: m}}",
        declaration, origin.update, metric.key);
  } else if (origin.is_ratio && is_mean && !origin.is_gathered) {
    metric.rule = "a ratio of sums is not the mean of the ratios of its parts";
    metric.remedy =
        "log its parts as sums (reduce_fx: sum) and compute it once; or use a metric object";
  } else if (origin.is_gathered && origin.is_mean) {
    metric.rule = "a mean of gathered means weights each alike, however many samples it covers";
    metric.remedy =
        "gather sums and numbers of samples, and divide once; or log the value of each batch in "
        "its step with sync_dist: true";
  }
}

bool is_reduction(std::string_view function) {
  return function == "sum" || function == "max" || function == "min";
}

// Sums of sums and extremes of extremes are those of the whole; what else is reduced so is not.
void add_rule_of_reduction(const LoggedOrigins& origins, const Expression& expression,
                           GlobalMetric& metric) {
  const std::string root(origins.root_function(expression));
  if (root == metric.reduction) {
    return;
  }
  metric.other_rule = fmt::format("the {} of its parts is that of the whole for a {} alone",
                                  metric.reduction, metric.reduction);
  if (is_reduction(root)) {
    metric.other_remedy = fmt::format("log it with reduce_fx: {}, sync_dist: true", root);
  } else if (origins.is_linear(expression)) {
    metric.other_remedy = "log it in the step with sync_dist: true and the default reduce_fx, mean";
  } else {
    metric.other_remedy = "log its parts, and compute it once from them; or use a metric object";
  }
  if (is_reduction(root) || root == "mean") {
    metric.averaging = metric.other_rule;
  }
}

// Possible defects of a key without its own rule.
void add_other_rule(const LoggedOrigins& origins, const Expression& expression,
                    const LoggedKey& logged, bool has_batch_size, GlobalMetric& metric) {
  if (!metric.rule.empty() || !origins.is_of_samples_alone(expression)) {
    return;
  }
  if (is_reduction(metric.reduction)) {
    add_rule_of_reduction(origins, expression, metric);
    return;
  }
  const std::string root(origins.root_function(expression));
  const bool is_mean = logged.reduce_fx == "mean";
  if (origins.sums_over_ranks(expression)) {
    metric.other_rule = "the values of the ranks are summed, and nothing divides by their number";
    metric.other_remedy =
        "take the mean of the gathered values, or divide the sum of all_reduce by world_size";
    metric.averaging = metric.other_rule;
  } else if (origins.is_scaled_by_ranks(expression)) {
    metric.other_rule = "it is scaled by world_size, but it is not a sum over the ranks";
    metric.other_remedy = "leave world_size out: sync_dist: true takes the mean";
    metric.averaging = metric.other_rule;
  } else if (is_mean && is_reduction(root)) {
    metric.other_rule =
        fmt::format("a {} is the {} of its parts, but here they are averaged", root, root);
    metric.other_remedy = fmt::format("log it with reduce_fx: {}, sync_dist: true", root);
    metric.averaging = metric.other_rule;
  } else if (is_mean && has_batch_size) {
    metric.other_rule = "each value is weighted by the `batch_size` that it is logged with";
    metric.other_remedy = "leave `batch_size` out, or give the number of samples of the value";
  } else if (!origins.is_linear(expression)) {
    metric.other_rule =
        "it is not a mean over samples: the values of parts do not average to the value of the "
        "whole";
    metric.other_remedy =
        "log the means or sums that it is made of, and compute it once of those; or a metric "
        "object";
    metric.averaging = is_mean ? metric.other_rule : metric.averaging;
  } else {
    metric.other_rule = "a mean of means weights each alike, however many samples it covers";
    metric.other_remedy =
        "log it in the step with sync_dist: true, where it is weighted by samples";
  }
}

// The averaging table of docs/metrics.md.
std::string averaging_of(const LoggedKey& logged, const GlobalMetric& metric) {
  if (logged.is_object) {
    return metric.remedy.empty() ? "a metric object merges states: no values are averaged"
                                 : "MeanMetric counts each value once where no weight is given";
  }
  if (is_reduction(logged.reduce_fx)) {
    return fmt::format("the {} of its parts", logged.reduce_fx);
  }
  return metric.rule.empty() ? "mean weighted by batch size" : metric.rule;
}

bool is_evaluation(const std::string& hook) {
  return hook.find("validation") != std::string::npos || hook.find("test") != std::string::npos;
}

const char* stage_of(const std::string& hook) {
  return hook.find("validation") != std::string::npos ? "validation" : "test";
}

// Whether the ranks take some sample of the stage twice or never, in its last epoch.
bool samples_differ(const OneRun& run, const std::string& hook) {
  const std::optional<SampleCounts> counts = last_sample_counts(run, stage_of(hook));
  return !counts || counts->repeated > 0 || counts->missed > 0;
}

// A wrong value has lost what replicas or children bound, has mixed logits and probabilities, or
// counts earlier epochs.
bool tells_why(const RankLog& log) {
  return std::any_of(log.findings.begin(), log.findings.end(), [](const auto& finding) {
    return finding.code == "LS308" || finding.code == "LS311" || finding.code == "LS312";
  });
}

// The expression under which each key is logged first.
std::map<std::string, const Expression*> logged_expressions(const Scenario& scenario) {
  std::map<std::string, const Expression*> expressions;
  for_each_statement(*scenario.program, [&](const Statement& statement) {
    if (statement.log.name && statement.log.value) {
      expressions.emplace(statement.log.name->value, &statement.log.value->value);
    }
    for (const Binding& binding : statement.log.dictionary) {
      expressions.emplace(binding.name, &binding.expression);
    }
  });
  return expressions;
}

std::set<std::string> keys_with_batch_size(const Scenario& scenario) {
  std::set<std::string> keys;
  for_each_statement(*scenario.program, [&keys](const Statement& statement) {
    if (statement.log.name && statement.log.batch_size) {
      keys.insert(statement.log.name->value);
    }
    for (const Binding& binding : statement.log.dictionary) {
      if (statement.log.batch_size) {
        keys.insert(binding.name);
      }
    }
  });
  return keys;
}

std::set<std::string> monitored_keys(const RankLog& log) {
  std::set<std::string> keys;
  for (const MonitorLog& monitor : log.monitors) {
    keys.insert(without_fork(monitor.monitor));
  }
  for (const CheckpointLog& checkpoint : log.checkpoints) {
    keys.insert(without_fork(checkpoint.monitor));
  }
  keys.erase("");
  return keys;
}

std::string without_loader(const std::string& key) {
  return key.substr(0, std::min(key.find("/dataloader_idx_"), key.size()));
}

bool knows_loss(const OneRun& run) {
  const std::shared_ptr<const Network>& network = run.preparation.network;
  return run.preparation.options.numerics && network != nullptr && !network->layers.empty() &&
         std::ranges::none_of(network->layers, [](const Layer& layer) {
           const auto* const loss = std::get_if<LossArguments>(&layer.arguments);
           return loss != nullptr && !loss->mean;
         });
}

bool lacks_loss(const RankLog& rank, const GlobalMetric& metric) {
  return rank.missing_loss &&
         (metric.in_training ? rank.missing_loss->of_training : rank.missing_loss->of_evaluation);
}

/// What the program says of the keys that it logs.
class LoggedReader {
 public:
  LoggedReader(const OneRun& run, const SingleDevice* single)
      : run_(run),
        scenario_(*run.preparation.scenario),
        network_is_alike_(single == nullptr || single->network_is_alike),
        knows_taken_samples_(single != nullptr && !single->of_taken_samples.empty()),
        origins_(scenario_, knows_loss(run)),
        bindings_(*scenario_.program),
        expressions_(logged_expressions(scenario_)),
        stale_names_(stale_names(run)),
        monitored_(monitored_keys(run.preparation.log->ranks.front())),
        with_batch_size_(keys_with_batch_size(scenario_)) {
    const ByRank<RankLog>& ranks = run.preparation.log->ranks;
    any_rank_tells_why_ = std::any_of(ranks.begin(), ranks.end(), tells_why);
  }

  /// All but what its ranks logged.
  GlobalMetric metric_of(const LoggedKey& logged) const {
    GlobalMetric metric;
    metric.key = logged.key;
    metric.site = logged.site;
    metric.is_object = logged.is_object;
    metric.reduction = logged.reduce_fx;
    metric.synchronised = logged.synchronised && (logged.is_object || !stays_in_node(run_));
    metric.rank_zero_only = logged.rank_zero_only;
    metric.world_size = std::ranges::count_if(run_.preparation.log->ranks, &RankLog::runs_trainer);
    metric.is_told_already = any_rank_tells_why_ || (metric.is_object && !knows_taken_samples_ &&
                                                     samples_differ(run_, logged.hook));
    metric.is_out_of_reach = logged.is_out_of_reach;
    metric.of_last_batch = logged.of_last_batch;
    metric.in_training = !is_evaluation(logged.hook);
    metric.is_monitored = monitored_.count(without_fork(logged.key)) != 0;
    metric.chunks =
        logged.hook.ends_with("_step") ? run_.preparation.options.devices_per_rank : int64_t{1};
    const auto expression = expressions_.find(without_loader(logged.key));
    metric.is_stale =
        expression != expressions_.end() && bindings_.is_made_of(*expression->second, stale_names_);
    if (expression == expressions_.end()) {
      metric.averaging = averaging_of(logged, metric);
    } else if (logged.is_object) {
      add_object(*expression->second, metric);
      metric.averaging = averaging_of(logged, metric);
    } else {
      add_value(logged, *expression->second, metric);
    }
    return metric;
  }

 private:
  void add_object(const Expression& expression, GlobalMetric& metric) const {
    if (origins_.is_given_bare_means(expression.root().name)) {
      metric.remedy =
          "weight each mean by its number of samples: `weight: batch_size` beside `preds`";
    }
  }

  void add_value(const LoggedKey& logged, const Expression& expression,
                 GlobalMetric& metric) const {
    add_rule(origins_.of(expression), logged.reduce_fx == "mean", metric);
    metric.averaging = averaging_of(logged, metric);
    const bool of_network = origins_.is_of_network(expression);
    if (of_network) {
      add_missing_loss(metric);
    }
    metric.is_stand_in = of_network && !run_.preparation.options.numerics;
    metric.elements = of_network ? summed_samples(logged.hook) : 0;
    metric.network_error = of_network ? network_error(run_) : 0;
    if (is_evaluation(logged.hook) && !samples_differ(run_, logged.hook) &&
        (network_is_alike_ || !of_network)) {
      add_other_rule(origins_, expression, logged,
                     with_batch_size_.count(without_loader(logged.key)) != 0, metric);
      if (metric.is_told_already) {
        metric.averaging = averaging_of(logged, metric);
      }
    }
    metric.is_of_gathered =
        !metric.rule.empty() && bindings_.is_of_gathered(expression, origins_) &&
        origins_.is_of_samples_alone(expression) && (network_is_alike_ || !of_network);
    if (origins_.is_computed(expression)) {
      metric.averaging = "computed over all ranks: no values are averaged";
    }
  }

  void add_missing_loss(GlobalMetric& metric) const {
    for (const RankLog& rank : run_.preparation.log->ranks) {
      if (lacks_loss(rank, metric)) {
        metric.why_without_loss = rank.missing_loss->cause;
        metric.loss_remedy = rank.missing_loss->remedy;
        return;
      }
    }
  }

  // In the value itself, and in the gradients behind the parameters.
  int64_t summed_samples(const std::string& hook) const {
    int64_t samples = samples_of_stage(run_, stage_of(hook)).value_or(0);
    for (const RankLog& rank : run_.preparation.log->ranks) {
      for (const SampleUse& use : rank.samples) {
        samples += use.stage == "train" ? use.samples.size() : 0;
      }
    }
    return samples;
  }

  const OneRun& run_;
  const Scenario& scenario_;
  bool network_is_alike_;
  bool knows_taken_samples_;
  LoggedOrigins origins_;
  ProgramBindings bindings_;
  std::map<std::string, const Expression*> expressions_;
  std::set<std::string> stale_names_;
  std::set<std::string> monitored_;
  std::set<std::string> with_batch_size_;
  bool any_rank_tells_why_ = false;
};

}  // namespace

std::vector<GlobalMetric> logged_metrics(const OneRun& run, const SingleDevice* single_device) {
  std::vector<GlobalMetric> metrics;
  if (!run.preparation.scenario->program) {
    return metrics;
  }
  const LoggedReader reader(run, single_device);
  std::map<std::string, size_t> by_key;
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const LoggedKey& logged : ranks[rank].logged) {
      const auto [place, fresh] = by_key.emplace(logged.key, metrics.size());
      if (fresh) {
        metrics.push_back(reader.metric_of(logged));
        if (single_device != nullptr && single_device->metrics.count(logged.key) != 0) {
          metrics.back().single_device = single_device->metrics.at(logged.key);
        }
        if (single_device != nullptr && single_device->of_taken_samples.count(logged.key) != 0) {
          metrics.back().of_taken_samples = single_device->of_taken_samples.at(logged.key);
        }
      }
      const bool is_of_missing_loss = !metrics[place->second].why_without_loss.empty() &&
                                      lacks_loss(ranks[rank], metrics[place->second]);
      metrics[place->second].ranks.push_back({static_cast<int32_t>(rank), logged.value, logged.own,
                                              logged.batch_sizes, logged.common_batch_sizes,
                                              logged.batches, is_of_missing_loss});
    }
  }
  return metrics;
}

bool logs_in_stage(const OneRun& run, std::string_view stage) {
  const std::vector<LoggedKey>& logged = run.preparation.log->ranks.front().logged;
  return std::any_of(logged.begin(), logged.end(), [stage](const LoggedKey& key) {
    return key.hook.find(stage) != std::string::npos;
  });
}

bool wants_reference(const OneRun& run) {
  const std::vector<GlobalMetric> metrics = logged_metrics(run, nullptr);
  return std::any_of(metrics.begin(), metrics.end(), [](const GlobalMetric& metric) {
    return !metric.in_training &&
           (!metric.rule.empty() || !metric.other_rule.empty() || metric.rank_zero_only ||
            metric.is_object || std::ssize(metric.ranks) < metric.world_size);
  });
}

}  // namespace lockstep::cli
