#include "cli/logged_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>

#include "cli/configuration.hpp"
#include "model/metric/averaging.hpp"
#include "model/metric/functional.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/trainer/metric_sites.hpp"

namespace lockstep::cli {

namespace {

/// What a value is made of: the first metric in it, and whether ranks' values were gathered.
struct Origin {
  std::string class_name;
  std::string declaration;   ///< of the same as an object: "{BinaryF1Score: {threshold: 0.2}}"
  std::string update = "m";  ///< that gives it the same
  bool is_ratio = false;     ///< it divides by what depends on samples
  bool is_micro = false;
  bool is_gathered = false;
  bool is_mean = false;
};

/// Finds what logged values come from, through the names that statements bind.
class Origins {
 public:
  explicit Origins(const Scenario& scenario) : scenario_(scenario) {
    if (scenario.data) {
      add_columns(*scenario.data);
    }
    for_each_statement(*scenario.program, [this](const Statement& statement) {
      for (const Binding& binding : statement.bindings) {
        bindings_[binding.name].push_back(&binding.expression);
      }
      if (!statement.result) {
        return;
      }
      if (statement.kind == StatementKind::update && statement.name) {
        batch_values_[statement.result->value] = metric_name_of(statement.name->value);
      } else if (statement.kind == StatementKind::all_gather) {
        gathered_.insert(statement.result->value);
      }
    });
  }

  Origin of(const Expression& expression) {
    Origin origin;
    std::set<std::string> seen;
    visit(expression.root(), false, origin, seen);
    return origin;
  }

 private:
  void add_columns(const DataSpec& data) {
    for (const auto* loaders : {&data.train, &data.val, &data.test}) {
      for (const LoaderSpec& loader : *loaders) {
        if (loader.values) {
          std::ranges::transform(loader.values->columns, std::inserter(columns_, columns_.end()),
                                 &Column::name);
        }
      }
    }
  }

  // `is_summed`: a mean or sum is taken of it, element by element.
  void visit(const ExpressionNode& node, bool is_summed, Origin& origin,
             std::set<std::string>& seen) {
    const bool is_call = node.kind == ExpressionNode::Kind::call;
    if (is_call && !(is_summed && bends(node.name))) {
      visit_call(node, origin);
    }
    visit_arithmetic(node, origin);
    if (node.kind == ExpressionNode::Kind::name && seen.insert(node.name).second) {
      visit_name(node.name, is_summed, origin, seen);
    }
    const bool sums = is_call && (node.name == "mean" || node.name == "sum");
    for (const ExpressionNodePointer& part : node.parts) {
      visit(*part, is_summed || sums, origin, seen);
    }
  }

  // A mean of its values is not its value of the mean.
  static bool bends(std::string_view function) {
    return function == "sqrt" || function == "exp" || function == "log";
  }

  // A mean of these over batches and ranks is not that of all samples, whatever the weights.
  void visit_arithmetic(const ExpressionNode& node, Origin& origin) const {
    using Kind = ExpressionNode::Kind;
    const bool divides = node.kind == Kind::binary && node.operation == Operator::divide;
    if (divides && depends_on_samples(*node.parts[1])) {
      origin.is_ratio = true;
    }
  }

  bool depends_on_samples(const ExpressionNode& node) const {
    std::set<std::string> seen;
    return depends(node, seen);
  }

  // `len` and `shape` of a batch are the same in all but the last.
  bool depends(const ExpressionNode& node, std::set<std::string>& seen) const {
    const bool shape_only =
        node.kind == ExpressionNode::Kind::call && (node.name == "len" || node.name == "shape");
    if (node.kind == ExpressionNode::Kind::name && seen.insert(node.name).second) {
      const auto bound = bindings_.find(node.name);
      return bound == bindings_.end()
                 ? columns_.count(node.name) != 0
                 : std::ranges::any_of(bound->second, [&](const Expression* expression) {
                     return depends(expression->root(), seen);
                   });
    }
    return !shape_only && std::ranges::any_of(node.parts, [&](const ExpressionNodePointer& part) {
      return depends(*part, seen);
    });
  }

  static void visit_call(const ExpressionNode& node, Origin& origin) {
    origin.is_mean = origin.is_mean || node.name == "mean";
    if (!origin.class_name.empty()) {
      return;
    }
    origin.class_name = node.name == "sqrt" ? "RootMeanSquaredError" : metric_class_of(node.name);
    if (node.name == "exp" || node.name == "log") {
      origin.class_name = node.name;
    }
    declare(node, origin);
    for (const ExpressionNodePointer& part : node.parts) {
      const bool is_text =
          part->kind == ExpressionNode::Kind::constant && part->value.is(Value::Kind::text);
      origin.is_micro = origin.is_micro || (is_text && part->value.text() == "micro");
    }
  }

  // The object with the arguments of the function.
  static void declare(const ExpressionNode& node, Origin& origin) {
    origin.declaration = origin.class_name;
    const std::vector<std::string_view> names = metric_arguments_of(node.name);
    std::vector<std::string> arguments;
    const size_t given = node.parts.size() < 2 ? 0 : node.parts.size() - 2;
    for (size_t i = 0; i < std::min(given, names.size()); ++i) {
      const ExpressionNode& part = *node.parts[i + 2];
      const bool is_constant = part.kind == ExpressionNode::Kind::constant;
      arguments.push_back(
          fmt::format("{}: {}", names[i], is_constant ? text_of(part.value) : std::string("..")));
      if (names[i] == "squared" && is_constant && part.value == Value(false)) {
        origin.class_name = "RootMeanSquaredError";
      }
    }
    if (!arguments.empty()) {
      origin.declaration =
          fmt::format("{{{}: {{{}}}}}", origin.declaration, fmt::join(arguments, ", "));
    }
    if (given + 2 > node.parts.size()) {
      return;
    }
    const auto name_of = [&node](size_t part) {
      return node.parts[part]->kind == ExpressionNode::Kind::name ? node.parts[part]->name : "..";
    };
    if (name_of(0) != "score" || name_of(1) != "target") {
      origin.update = fmt::format("{{metric: m, preds: {}, target: {}}}", name_of(0), name_of(1));
    }
  }

  void visit_name(const std::string& name, bool is_summed, Origin& origin,
                  std::set<std::string>& seen) {
    origin.is_gathered = origin.is_gathered || gathered_.count(name) != 0;
    const auto batch = batch_values_.find(name);
    if (batch != batch_values_.end() && origin.class_name.empty()) {
      for (const NamedMetric& metric : scenario_.metrics) {
        if (metric.name == batch->second) {
          origin.class_name = metric.metric.name;
        }
      }
    }
    const auto bound = bindings_.find(name);
    if (bound != bindings_.end()) {
      for (const Expression* expression : bound->second) {
        visit(expression->root(), is_summed, origin, seen);
      }
    }
  }

  const Scenario& scenario_;
  std::map<std::string, std::vector<const Expression*>> bindings_;
  std::map<std::string, std::string> batch_values_;
  std::set<std::string> gathered_;
  std::set<std::string, std::less<>> columns_ = {"score", "target", "loss", "output"};
};

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
        "log what it is made of as sums (reduce_fx: sum) and compute it once; or a metric object";
  } else if (origin.is_gathered && origin.is_mean) {
    metric.rule = "a mean of gathered means counts each alike, however many samples it is of";
    metric.remedy =
        "gather sums and numbers of samples, and divide once; or log the value with "
        "sync_dist: true";
  }
}

// The averaging table of docs/metrics.md.
std::string averaging_of(const LoggedKey& logged, const GlobalMetric& metric) {
  if (logged.is_object) {
    return "a metric object merges states: no values are averaged";
  }
  if (logged.reduce_fx == "sum" || logged.reduce_fx == "max" || logged.reduce_fx == "min") {
    return fmt::format("the {} of its parts, always", logged.reduce_fx);
  }
  return metric.rule.empty() ? "the mean of its parts where each counts by its samples"
                             : metric.rule;
}

bool is_evaluation(const std::string& hook) {
  return hook.find("validation") != std::string::npos || hook.find("test") != std::string::npos;
}

// Whether the ranks take some sample of the stage twice or never, in its last epoch.
bool samples_differ(const OneRun& run, const std::string& hook) {
  const char* const stage = hook.find("validation") != std::string::npos ? "validation" : "test";
  int64_t last = 0;
  for (const SampleUse& use : run.preparation.log->ranks.front().samples) {
    last = use.stage == stage ? std::max(last, use.epoch) : last;
  }
  const std::optional<SampleCounts> counts = sample_counts(run, stage, last);
  return !counts || counts->repeated > 0 || counts->missed > 0;
}

// A metric object that is wrong has lost updates, or taken batches by two scales.
bool tells_why(const RankLog& log) {
  return std::any_of(log.findings.begin(), log.findings.end(), [](const auto& finding) {
    return finding.code == "LS308" || finding.code == "LS311";
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

std::string without_loader(const std::string& key) {
  return key.substr(0, std::min(key.find("/dataloader_idx_"), key.size()));
}

}  // namespace

std::vector<GlobalMetric> logged_metrics(const OneRun& run,
                                         const std::map<std::string, double>* single_device) {
  const Scenario& scenario = *run.preparation.scenario;
  std::vector<GlobalMetric> metrics;
  if (!scenario.program) {
    return metrics;
  }
  Origins origins(scenario);
  const auto expressions = logged_expressions(scenario);
  std::map<std::string, size_t> by_key;
  const std::vector<RankLog>& ranks = run.preparation.log->ranks;
  const bool any_rank_tells_why = std::any_of(ranks.begin(), ranks.end(), tells_why);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const LoggedKey& logged : ranks[rank].logged) {
      const auto [place, fresh] = by_key.emplace(logged.key, metrics.size());
      if (fresh) {
        GlobalMetric metric;
        metric.key = logged.key;
        metric.site = logged.site;
        metric.is_object = logged.is_object;
        metric.synchronised = logged.synchronised;
        metric.rank_zero_only = logged.rank_zero_only;
        metric.is_told_already =
            metric.is_object && (samples_differ(run, logged.hook) || any_rank_tells_why);
        metric.of_last_batch = logged.of_last_batch;
        metric.in_training = !is_evaluation(logged.hook);
        metric.chunks =
            logged.hook.ends_with("_step") ? run.preparation.options.devices_per_rank : int64_t{1};
        const auto expression = expressions.find(without_loader(logged.key));
        if (expression != expressions.end() && !logged.is_object) {
          add_rule(origins.of(*expression->second), logged.reduce_fx == "mean", metric);
        }
        metric.averaging = averaging_of(logged, metric);
        if (single_device != nullptr && single_device->count(logged.key) != 0) {
          metric.single_device = single_device->at(logged.key);
        }
        metrics.push_back(std::move(metric));
      }
      metrics[place->second].ranks.push_back({static_cast<int32_t>(rank), logged.value, logged.own,
                                              logged.batch_sizes, logged.common_batch_sizes,
                                              logged.batches});
    }
  }
  return metrics;
}

namespace {

std::vector<Finding> judged(const OneRun& run, const std::map<std::string, double>* single_device) {
  const bool ended =
      std::all_of(run.result.ends.begin(), run.result.ends.end(),
                  [](const RankEnd& end) { return end.kind == RankEnd::Kind::finished; });
  return ended && !run.result.hung ? metric_is_global(logged_metrics(run, single_device))
                                   : std::vector<Finding>();
}

}  // namespace

std::vector<Finding> metric_findings(const OneRun& run) { return judged(run, nullptr); }

std::vector<Finding> metric_findings(const OneRun& run,
                                     const std::map<std::string, double>& single_device) {
  return judged(run, &single_device);
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
           (!metric.rule.empty() || metric.rank_zero_only || metric.is_object);
  });
}

}  // namespace lockstep::cli
