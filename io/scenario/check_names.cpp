#include "io/scenario/check_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "io/scenario/catalogue.hpp"
#include "io/scenario/spelling.hpp"
#include "model/scenario/function.hpp"

namespace lockstep {
namespace {

using Names = std::set<std::string, std::less<>>;

/// BinaryF1Score is binary_f1_score in torchmetrics.functional, MulticlassAUROC multiclass_auroc.
std::string functional_name(std::string_view class_name) {
  std::string out;
  for (size_t i = 0; i < class_name.size(); ++i) {
    const auto upper = [&](size_t at) {
      return at < class_name.size() && std::isupper(static_cast<unsigned char>(class_name[at]));
    };
    const bool lower_after =
        i + 1 < class_name.size() && std::islower(static_cast<unsigned char>(class_name[i + 1]));
    if (i > 0 && upper(i) && (!upper(i - 1) || lower_after)) {
      out += '_';
    }
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(class_name[i])));
  }
  return out;
}

Names names_in_scope(const Scenario& scenario) {
  Names names = {"rank", "world_size", "local_rank", "node_rank", "is_global_zero"};
  if (scenario.is_bare_program()) {
    return names;
  }
  for (const std::string_view name :
       {"is_last_batch", "global_step", "epoch", "batch_idx", "batch_size", "num_batches",
        "dataloader_idx", "sanity_checking", "outputs", "callback_metrics", "output", "loss"}) {
    names.emplace(name);
  }
  for (const NamedMetric& metric : scenario.metrics) {
    names.insert(metric.name);
    names.insert("self." + metric.name);
  }
  return names;
}

/// Columns of the batch. Nothing when a CSV file holds them: its header is not read here.
bool add_columns(const Scenario& scenario, Names& names) {
  bool known = true;
  bool any = false;
  const auto add = [&](const LoaderSpec& loader) {
    if (!loader.values) {
      return;
    }
    any = true;
    known = known && !loader.values->csv;
    for (const Column& column : loader.values->columns) {
      names.insert(column.name);
    }
  };
  if (scenario.data) {
    add(scenario.data->common);
    for (const auto* stage : {&scenario.data->train, &scenario.data->val, &scenario.data->test,
                              &scenario.data->predict}) {
      std::for_each(stage->begin(), stage->end(), add);
    }
  }
  // A loader without `values` has the default columns.
  const bool all_from_common = scenario.data && scenario.data->common.values;
  if (!any || !all_from_common) {
    names.insert({"score", "target", "loss"});
  }
  return known;
}

class NameCheck {
 public:
  NameCheck(Reader& reader, const Scenario& scenario) : reader_(reader), scenario_(scenario) {
    base_ = names_in_scope(scenario);
    columns_known_ = scenario.is_bare_program() || add_columns(scenario, base_);
    for (const std::string_view name : function_names()) {
      functions_.emplace(name);
    }
    if (!scenario.is_bare_program()) {
      for (const ClassRow& metric : classes(ObjectRole::metric)) {
        functions_.insert(functional_name(metric.name));
      }
    }
    base_.insert("world");
  }

  void run() {
    if (!scenario_.program) {
      return;
    }
    for (const Hook& hook : scenario_.program->hooks) {
      collect_self(hook.statements);
    }
    for (const Hook& hook : scenario_.program->hooks) {
      Names bound = base_;
      check(hook.statements, bound);
    }
  }

 private:
  void collect_self(const std::vector<Statement>& statements) {
    const auto collect = [&](const std::string& name) {
      if (name.starts_with("self.")) {
        base_.insert(name);
      }
    };
    for (const Statement& statement : statements) {
      for (const Binding& binding : statement.bindings) {
        collect(binding.name);
      }
      if (statement.result) {
        collect(statement.result->value);
      }
      for (const auto& written : statement.work.writes) {
        collect(written.value);
      }
      collect_self(statement.body);
      collect_self(statement.otherwise);
    }
  }

  static void bind(const Statement& statement, Names& bound) {
    for (const Binding& binding : statement.bindings) {
      bound.insert(binding.name);
    }
    if (statement.result) {
      bound.insert(statement.result->value);
    }
    for (const auto& written : statement.work.writes) {
      bound.insert(written.value);
    }
  }

  /// Everything that some path of these statements may bind.
  static void bind_all(const std::vector<Statement>& statements, Names& bound) {
    for (const Statement& statement : statements) {
      bind(statement, bound);
      bind_all(statement.body, bound);
      bind_all(statement.otherwise, bound);
    }
  }

  void check(const std::vector<Statement>& statements, Names& bound) {
    for (const Statement& statement : statements) {
      if (statement.kind == StatementKind::repeat) {
        // The second turn sees what the first has bound.
        use(statement.expression, bound);
        Names inside = bound;
        bind(statement, inside);
        bind_all(statement.body, inside);
        check(statement.body, inside);
        bound = std::move(inside);
        continue;
      }
      check_one(statement, bound);
      Names taken = bound;
      check(statement.body, taken);
      Names other = bound;
      check(statement.otherwise, other);
      bound.insert(taken.begin(), taken.end());
      bound.insert(other.begin(), other.end());
      bind(statement, bound);
    }
  }

  void check_one(const Statement& statement, const Names& bound) {
    const CommunicationSpec& data = statement.communication;
    const DeviceWork& work = statement.work;
    for (const auto* expression :
         {&data.tensor, &data.elements, &data.src, &data.dst, &data.tag, &work.time, &work.flops,
          &work.bytes, &work.tensor, &statement.log.value, &statement.log.batch_size,
          &statement.ranks_expression, &statement.color, &statement.expression,
          &statement.sync_grad, &statement.preds, &statement.target}) {
      use(*expression, bound);
    }
    for (const auto* list : {&data.input_split_sizes, &data.output_split_sizes, &statement.ranks}) {
      for (const auto& expression : *list) {
        use(expression.value, bound);
      }
    }
    Names so_far = bound;
    for (const Binding& binding : statement.bindings) {
      use(binding.expression, so_far);
      so_far.insert(binding.name);
    }
    for (const Binding& binding : statement.log.dictionary) {
      use(binding.expression, bound);
    }
    for (const auto& name : work.reads) {
      require(name.value, name.place, bound);
    }
    if (statement.group) {
      require(statement.group->value, statement.group->place, bound);
    }
    if (statement.kind == StatementKind::wait && statement.name) {
      require(statement.name->value, statement.name->place, bound);
    }
    check_references(statement);
  }

  void use(const Given<Expression>& expression, const Names& bound) {
    if (expression) {
      use(expression->value, bound);
    }
  }

  void use(const Expression& expression, const Names& bound) { use_node(expression.root(), bound); }

  void use_node(const ExpressionNode& node, const Names& bound) {
    if (node.kind == ExpressionNode::Kind::name) {
      require(node.name, node.place, bound);
    }
    if (node.kind == ExpressionNode::Kind::call && functions_.count(node.name) == 0) {
      const std::vector<std::string_view> legal(functions_.begin(), functions_.end());
      reader_.fail_at(node.place, fmt::format("there is no function `{}`", node.name),
                      spelling_remedy(node.name, legal));
    }
    for (const ExpressionNodePointer& part : node.parts) {
      use_node(*part, bound);
    }
  }

  void require(const std::string& name, const SourcePlace& place, const Names& bound) {
    if (!columns_known_ && name.find('.') == std::string::npos) {
      return;
    }
    if (bound.count(name) == 0) {
      const std::vector<std::string_view> legal(bound.begin(), bound.end());
      const std::string nearest = nearest_spelling(name, legal);
      reader_.fail_at(place, fmt::format("nothing has bound `{}` here", name),
                      nearest.empty() ? fmt::format("bind it first: - let: {{{}: ..}}", name)
                                      : fmt::format("did you mean `{}`?", nearest));
    }
  }

  void check_references(const Statement& statement) {
    if (statement.optimizer) {
      std::vector<std::string_view> legal;
      for (const Object& optimizer : scenario_.optimizers) {
        if (const PlainValue* name = optimizer.find("name")) {
          if (const auto* text = name->get_if<std::string>()) {
            legal.push_back(*text);
          }
        }
      }
      require_one_of(*statement.optimizer, "optimizer", legal);
    }
    const bool metric = statement.kind == StatementKind::update ||
                        statement.kind == StatementKind::compute ||
                        statement.kind == StatementKind::reset;
    if (metric && statement.name) {
      std::vector<std::string_view> legal;
      for (const NamedMetric& known : scenario_.metrics) {
        legal.push_back(known.name);
      }
      require_one_of(*statement.name, "metric", legal);
    }
    if (statement.kind == StatementKind::forward && statement.name) {
      std::vector<std::string_view> legal;
      if (scenario_.model) {
        for (const auto& [name, model] : scenario_.model->modules) {
          legal.push_back(name);
        }
      }
      require_one_of(*statement.name, "module", legal);
    }
  }

  void require_one_of(const Placed<std::string>& name, std::string_view what,
                      const std::vector<std::string_view>& legal) {
    constexpr std::string_view self = "self.";
    std::string_view plain = name.value;
    if (plain.starts_with(self)) {
      plain.remove_prefix(self.size());
    }
    if (std::find(legal.begin(), legal.end(), plain) == legal.end()) {
      reader_.fail_at(name.place, fmt::format("there is no {} `{}`", what, name.value),
                      legal.empty() ? fmt::format("the scenario names no {}", what)
                                    : spelling_remedy(plain, legal));
    }
  }

  Reader& reader_;
  const Scenario& scenario_;
  Names base_;
  Names functions_;
  bool columns_known_ = true;
};

}  // namespace

void check_names(Reader& reader, const Scenario& scenario) { NameCheck(reader, scenario).run(); }

}  // namespace lockstep
