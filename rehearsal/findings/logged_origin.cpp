#include "rehearsal/findings/logged_origin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "model/metric/definition.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/user_program/metric_sites.hpp"
#include "rehearsal/findings/origin_of_call.hpp"

namespace lockstep::cli {

class LoggedOrigins::Names {
 public:
  Names(const Scenario& scenario, bool knows_loss) : scenario_(scenario) {
    if (scenario.data) {
      add_columns(*scenario.data);
    }
    is_loss_of_network_ = given_.count("loss") == 0;
    if (is_loss_of_network_ && knows_loss) {
      given_.insert("loss");
    }
    for_each_statement(*scenario.program, [this](const Statement& statement) {
      for (const Binding& binding : statement.bindings) {
        bindings_[binding.name].push_back(&binding.expression);
      }
      if (statement.kind == StatementKind::update && statement.name) {
        updates_.push_back(&statement);
      }
      if (!statement.result) {
        return;
      }
      if (statement.communication.tensor) {
        bindings_[statement.result->value].push_back(&statement.communication.tensor->value);
      }
      if (statement.kind == StatementKind::compute) {
        computed_.insert(statement.result->value);
      }
      if (statement.kind == StatementKind::update && statement.name) {
        batch_values_[statement.result->value].insert(metric_name_of(statement.name->value));
      } else if (statement.kind == StatementKind::all_gather) {
        gathered_.insert(statement.result->value);
      } else if (statement.kind == StatementKind::all_reduce &&
                 value_or(statement.communication.op, ReduceOp::sum) == ReduceOp::sum) {
        reduced_.insert(statement.result->value);
      }
    });
    // The `*_end` hooks of 1.x get what the steps return.
    const auto returned = bindings_.find("output");
    if (returned != bindings_.end()) {
      bindings_["outputs"] = returned->second;
    }
  }

  /// It depends on the samples, and on nothing that differs from rank to rank or batch to batch.
  bool is_of_samples_alone(const Expression& expression) const {
    std::set<std::string> seen;
    std::set<std::string> names;
    bool draws = false;
    collect(expression.root(), seen, names, draws);
    const auto holds = [&names](const auto& list) {
      return std::ranges::any_of(
          list, [&names](const auto& one) { return names.count(std::string(one)) != 0; });
    };
    constexpr std::string_view of_places[] = {"rank",           "local_rank",      "node_rank",
                                              "is_global_zero", "batch_idx",       "num_batches",
                                              "batch_size",     "is_last_batch",   "global_step",
                                              "outputs",        "callback_metrics"};
    return !draws && !holds(of_places) && (holds(given_) || holds(computed_));
  }

  bool is_of_network(const Expression& expression) const {
    return is_loss_of_network_ && names_behind(expression).count("loss") != 0;
  }

  bool sums_over_ranks(const ExpressionNode& node) const {
    if (node.kind == ExpressionNode::Kind::call) {
      return node.name == "sum" && gathered_.count(node.parts.front()->name) != 0;
    }
    return node.kind == ExpressionNode::Kind::name && reduced_.count(node.name) != 0;
  }

  bool is_scaled_by_ranks(const Expression& expression) const {
    const auto comes_from_ranks = [this](const std::string& name) {
      return gathered_.count(name) != 0 || reduced_.count(name) != 0 || computed_.count(name) != 0;
    };
    return names_behind(expression).count("world_size") != 0 &&
           std::ranges::none_of(expression.names(), comes_from_ranks);
  }

  /// Also one of the values of a collection.
  bool is_computed(const ExpressionNode& node) const {
    const bool is_entry = node.kind == ExpressionNode::Kind::index;
    return computed_.count(is_entry ? node.parts.front()->name : node.name) != 0;
  }

  /// What the value is at its root, by the names that statements bind: "sum", "max", "mean", ..
  std::string_view root_function(const ExpressionNode& node) const {
    const auto bound = bindings_.find(node.name);
    if (node.kind == ExpressionNode::Kind::name && bound != bindings_.end() &&
        bound->second.size() == 1 && bound->second.front()->root().name != node.name) {
      return root_function(bound->second.front()->root());
    }
    return node.kind == ExpressionNode::Kind::call && node.parts.size() == 1
               ? std::string_view(node.name)
               : std::string_view();
  }

  /// Sums and multiples of means, so that a mean of its values is its value of the mean.
  bool is_linear(const ExpressionNode& node) const {
    using Kind = ExpressionNode::Kind;
    if (!depends_on_samples(node)) {
      return !is_computed(node);
    }
    if (node.kind == Kind::call) {
      return node.name == "mean" || (node.name == "float" && is_linear(*node.parts.front()));
    }
    if (node.kind == Kind::name) {
      const auto bound = bindings_.find(node.name);
      return bound == bindings_.end() ||
             (bound->second.size() == 1 && bound->second.front()->root().name != node.name &&
              is_linear(bound->second.front()->root()));
    }
    if (node.kind != Kind::binary) {
      return node.parts.size() == 1 && is_linear(*node.parts.front());
    }
    const bool left = depends_on_samples(*node.parts[0]);
    const bool right = depends_on_samples(*node.parts[1]);
    const bool adds = node.operation == Operator::add || node.operation == Operator::subtract;
    const bool scales = (node.operation == Operator::multiply && !(left && right)) ||
                        (node.operation == Operator::divide && !right);
    return (adds || scales) && is_linear(*node.parts[0]) && is_linear(*node.parts[1]);
  }

  bool is_given_bare_means(const std::string& metric) const {
    const auto is_of = [&metric](const NamedMetric& one) {
      return one.name == metric && one.metric.name == "MeanMetric";
    };
    return std::ranges::any_of(scenario_.metrics, is_of) &&
           std::ranges::any_of(updates_, [&](const Statement* update) {
             return metric_name_of(update->name->value) == metric && !update->weight &&
                    update->preds && is_mean(update->preds->value.root());
           });
  }

  Origin of(const Expression& expression) const {
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
          if (loader.values->place.line == 0) {
            continue;  // of the defaults, whose `loss` stands for the network's
          }
          std::ranges::transform(loader.values->columns, std::inserter(given_, given_.end()),
                                 &Column::name);
          if (loader.values->table) {
            std::ranges::transform(loader.values->table->columns(),
                                   std::inserter(given_, given_.end()), &SampleTable::Column::name);
          }
        }
      }
    }
  }

  // `is_summed`: a mean or sum is taken of it, element by element.
  void visit(const ExpressionNode& node, bool is_summed, Origin& origin,
             std::set<std::string>& seen) const {
    const bool is_call = node.kind == ExpressionNode::Kind::call;
    if (is_call && !(is_summed && bends(node.name))) {
      note_call(node, origin);
    }
    visit_arithmetic(node, origin);
    visit_entry(node, origin);
    if (node.kind == ExpressionNode::Kind::name && seen.insert(node.name).second) {
      visit_name(node.name, is_summed, origin, seen);
    }
    const bool sums = is_call && (node.name == "mean" || node.name == "sum");
    for (const ExpressionNodePointer& part : node.parts) {
      visit(*part, is_summed || sums, origin, seen);
    }
  }

  std::set<std::string> names_behind(const Expression& expression) const {
    std::set<std::string> seen;
    std::set<std::string> names;
    bool draws = false;
    collect(expression.root(), seen, names, draws);
    return names;
  }

  // A mean of its values is not its value of the mean.
  static bool bends(std::string_view function) {
    return function == "sqrt" || function == "exp" || function == "log";
  }

  // How many batches there are, or one of them, is no matter of the samples.
  static bool counts_outputs(const ExpressionNode& node) {
    const bool counts = node.kind == ExpressionNode::Kind::index ||
                        (node.kind == ExpressionNode::Kind::call && node.name == "len");
    return counts && node.parts.front()->name == "outputs";
  }

  void collect(const ExpressionNode& node, std::set<std::string>& seen,
               std::set<std::string>& names, bool& draws) const {
    if (node.kind == ExpressionNode::Kind::name && seen.insert(node.name).second) {
      const auto bound = bindings_.find(node.name);
      if (bound == bindings_.end()) {
        names.insert(node.name);
      } else {
        for (const Expression* expression : bound->second) {
          collect(expression->root(), seen, names, draws);
        }
      }
    }
    const bool is_call = node.kind == ExpressionNode::Kind::call;
    draws = draws || (is_call && node.name == "random") || counts_outputs(node);
    for (const ExpressionNodePointer& part : node.parts) {
      collect(*part, seen, names, draws);
    }
  }

  // A mean of these over batches and ranks is not that of all samples, whatever the weights.
  void visit_arithmetic(const ExpressionNode& node, Origin& origin) const {
    using Kind = ExpressionNode::Kind;
    const bool divides = node.kind == Kind::binary && node.operation == Operator::divide;
    if (divides && depends_on_samples(*node.parts[1])) {
      origin.is_ratio = true;
    }
  }

  // `values['val_f1']` of what `update` has given of a collection.
  void visit_entry(const ExpressionNode& node, Origin& origin) const {
    if (node.kind != ExpressionNode::Kind::index || !origin.class_name.empty() ||
        !node.parts.back()->value.is(Value::Kind::text)) {
      return;
    }
    const auto batch = batch_values_.find(node.parts.front()->name);
    for (const NamedMetric& metric : scenario_.metrics) {
      if (batch == batch_values_.end() || batch->second.count(metric.name) == 0) {
        continue;
      }
      const MetricDefinition collection = define_metric(metric.name, metric.metric);
      for (const MetricDefinition& member : collection.members) {
        if (collection.key_of(member) == node.parts.back()->value.text()) {
          origin.class_name = member.class_name;
        }
      }
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

  // `loss` is one where it is the network's, and no column of the samples.
  bool is_mean(const ExpressionNode& node) const {
    std::set<std::string> seen;
    return is_mean(node, seen);
  }

  bool is_mean(const ExpressionNode& node, std::set<std::string>& seen) const {
    if (node.kind == ExpressionNode::Kind::call && node.name == "mean") {
      return true;
    }
    if (node.kind == ExpressionNode::Kind::name && seen.insert(node.name).second) {
      const auto bound = bindings_.find(node.name);
      return bound == bindings_.end()
                 ? node.name == "loss" && given_.count("loss") == 0
                 : std::ranges::any_of(bound->second, [&](const Expression* expression) {
                     return is_mean(expression->root(), seen);
                   });
    }
    return std::ranges::any_of(
        node.parts, [&](const ExpressionNodePointer& part) { return is_mean(*part, seen); });
  }

  bool gathers_means(const std::string& name) const {
    const auto bound = bindings_.find(name);
    return bound != bindings_.end() &&
           std::ranges::any_of(bound->second, [&](const Expression* expression) {
             return is_mean(expression->root());
           });
  }

  void visit_name(const std::string& name, bool is_summed, Origin& origin,
                  std::set<std::string>& seen) const {
    origin.is_gathered = origin.is_gathered || (gathered_.count(name) != 0 && gathers_means(name));
    const auto batch = batch_values_.find(name);
    if (batch != batch_values_.end() && origin.class_name.empty()) {
      for (const NamedMetric& metric : scenario_.metrics) {
        if (batch->second.count(metric.name) != 0) {
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
  std::map<std::string, std::set<std::string>> batch_values_;  ///< metrics by what `as` names
  std::set<std::string> gathered_;
  std::set<std::string> reduced_;  ///< names that all_reduce binds to a sum
  std::vector<const Statement*> updates_;
  std::set<std::string> computed_;                     ///< names that `compute` binds
  std::set<std::string> given_ = {"score", "target"};  ///< columns that the scenario gives
  bool is_loss_of_network_ = false;
  std::set<std::string, std::less<>> columns_ = {"score", "target", "loss", "output"};
};

LoggedOrigins::LoggedOrigins(const Scenario& scenario, bool knows_loss)
    : names_(std::make_unique<const Names>(scenario, knows_loss)) {}

LoggedOrigins::~LoggedOrigins() = default;

Origin LoggedOrigins::of(const Expression& expression) const { return names_->of(expression); }

bool LoggedOrigins::is_of_samples_alone(const Expression& expression) const {
  return names_->is_of_samples_alone(expression);
}

bool LoggedOrigins::is_of_network(const Expression& expression) const {
  return names_->is_of_network(expression);
}

bool LoggedOrigins::sums_over_ranks(const Expression& expression) const {
  return names_->sums_over_ranks(expression.root());
}

bool LoggedOrigins::is_scaled_by_ranks(const Expression& expression) const {
  return names_->is_scaled_by_ranks(expression);
}

bool LoggedOrigins::is_computed(const Expression& expression) const {
  return names_->is_computed(expression.root());
}

std::string_view LoggedOrigins::root_function(const Expression& expression) const {
  return names_->root_function(expression.root());
}

bool LoggedOrigins::is_given_bare_means(const std::string& metric) const {
  return names_->is_given_bare_means(metric);
}

bool LoggedOrigins::is_linear(const Expression& expression) const {
  return names_->is_linear(expression.root());
}

}  // namespace lockstep::cli
