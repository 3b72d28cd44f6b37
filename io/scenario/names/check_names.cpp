#include "io/scenario/names/check_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "io/scenario/classes/other_classes.hpp"
#include "io/scenario/names/familiar_words.hpp"
#include "io/scenario/names/known_names.hpp"
#include "io/scenario/names/name_scope.hpp"
#include "io/scenario/names/spelling.hpp"
#include "model/expression/function.hpp"
#include "model/metric/torchmetrics_names.hpp"
#include "model/scenario/expressions_of.hpp"

namespace lockstep {
namespace {

using Names = NameScope::Names;

// `register_buffer`: a buffer with a name is the module's own.
void add_buffers(const std::vector<LayerSpec>& layers, Names& names) {
  for (const LayerSpec& layer : layers) {
    if (layer.object.name == "Buffer" && layer.name) {
      names.insert("self." + layer.name->value);
    }
    add_buffers(layer.layers, names);
  }
}

Names names_in_scope(const Scenario& scenario) {
  Names names(std::begin(names_of_ranks), std::end(names_of_ranks));
  if (scenario.is_bare_program()) {
    return names;
  }
  names.insert(std::begin(names_of_trainers), std::end(names_of_trainers));
  names.emplace("loss");
  for (const NamedMetric& metric : scenario.metrics) {
    names.insert(metric.name);
    names.insert("self." + metric.name);
  }
  if (scenario.model) {
    add_buffers(scenario.model->layers, names);
  }
  return names;
}

/// Columns of the batch. False when a CSV file holds them that could not be read.
bool add_columns(const Scenario& scenario, Names& names) {
  bool known = true;
  bool any = false;
  const auto add = [&](const LoaderSpec& loader) {
    if (!loader.values) {
      return;
    }
    any = true;
    known = known && (!loader.values->csv || loader.values->table);
    if (loader.values->table) {
      for (std::string& name : column_names(*loader.values->table)) {
        names.insert(std::move(name));
      }
    }
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
      functions_.emplace("parameter");
      for (const TorchMetricsName& function : torchmetrics_functions()) {
        functions_.emplace(function.name);
      }
    }
    base_.insert("world");
  }

  void run() {
    for (const Object& scheduler : scenario_.schedulers) {
      require_argument(scheduler, "optimizer", optimizer_names());
    }
    for (const Object& optimizer : scenario_.optimizers) {
      require_argument(optimizer, "module", module_names());
    }
    if (!scenario_.program) {
      return;
    }
    for (const auto* hooks : {&scenario_.program->hooks, &scenario_.program->functions}) {
      for (const Hook& hook : *hooks) {
        collect_self(hook.statements);
      }
    }
    // What a function binds may be bound wherever it is called; it sees the names of its callers.
    NameScope anywhere(base_);
    for (const Hook& function : scenario_.program->functions) {
      bind_all(function.statements, anywhere);
    }
    for (const Hook& hook : scenario_.program->hooks) {
      NameScope bound(anywhere);
      if (hook.name == "lr_scheduler_step") {
        bound.bind("metric");  // its argument
      }
      check(hook.statements, bound);
    }
    anywhere.bind("metric");
    for (const Hook& hook : scenario_.program->hooks) {
      bind_all(hook.statements, anywhere);
    }
    for (const Hook& function : scenario_.program->functions) {
      check(function.statements, anywhere);
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

  static void bind(const Statement& statement, NameScope& bound) {
    for (const Binding& binding : statement.bindings) {
      bound.bind(binding.name);
    }
    if (statement.result) {
      bound.bind(statement.result->value);
    }
    for (const auto& written : statement.work.writes) {
      bound.bind(written.value);
    }
  }

  /// Everything that some path of these statements may bind.
  static void bind_all(const std::vector<Statement>& statements, NameScope& bound) {
    for (const Statement& statement : statements) {
      bind(statement, bound);
      bind_all(statement.body, bound);
      bind_all(statement.otherwise, bound);
    }
  }

  void check(const std::vector<Statement>& statements, NameScope& bound) {
    for (const Statement& statement : statements) {
      const size_t unbound = bound.unbound();
      if (statement.kind == StatementKind::repeat) {
        // The second turn sees what the first has bound.
        use(statement.expression, bound);
        bind(statement, bound);
        bind_all(statement.body, bound);
        check(statement.body, bound);
        bound.restore(unbound);
        continue;
      }
      check_one(statement, bound);
      const size_t before = bound.mark();
      check(statement.body, bound);
      if (statement.kind == StatementKind::branch) {
        bound.restore(unbound);
      }
      // What has raised may have bound names before that.
      const bool apart = statement.kind != StatementKind::attempt;
      const std::vector<std::string> taken =
          apart ? bound.hide_since(before) : std::vector<std::string>();
      check(statement.otherwise, bound);
      if (statement.kind == StatementKind::branch) {
        bound.restore(unbound);
      }
      for (const std::string& name : taken) {
        bound.bind(name);
      }
      bind(statement, bound);
    }
  }

  void check_one(const Statement& statement, NameScope& bound) {
    for (const Binding& binding : statement.bindings) {
      use(binding.expression, bound);
      bound.bind(binding.name);
    }
    for_each_expression(statement, [&](const Expression& expression) { use(expression, bound); });
    for (const auto& name : statement.work.reads) {
      require(name.value, name.place, bound);
    }
    if (statement.group) {
      require(statement.group->value, statement.group->place, bound);
    }
    if (statement.kind == StatementKind::wait && statement.name) {
      require(statement.name->value, statement.name->place, bound);
    }
    if (statement.names) {
      for (const std::string& name : statement.names->value) {
        require(name, statement.names->place, bound);
        if (!name.starts_with("self.")) {
          bound.unbind(name);
        }
      }
    }
    check_references(statement);
  }

  void use(const Given<Expression>& expression, const NameScope& bound) {
    if (expression) {
      use(expression->value, bound);
    }
  }

  void use(const Expression& expression, const NameScope& bound) {
    use_node(expression.root(), bound);
  }

  void use_node(const ExpressionNode& node, const NameScope& bound) {
    if (node.kind == ExpressionNode::Kind::name) {
      require(node.name, node.place, bound);
    }
    if (node.kind == ExpressionNode::Kind::call && functions_.count(node.name) == 0 &&
        !is_other_function(node.name)) {
      const std::vector<std::string_view> legal(functions_.begin(), functions_.end());
      reader_.fail_at(node.place, fmt::format("there is no function `{}`", node.name),
                      spelling_remedy(node.name, legal));
    }
    for (const ExpressionNodePointer& part : node.parts) {
      use_node(*part, bound);
    }
  }

  void require(const std::string& name, const SourcePlace& place, const NameScope& bound) {
    if (!columns_known_ && name.find('.') == std::string::npos) {
      return;
    }
    if (bound.contains(name)) {
      return;
    }
    // The nearest name of thousands is not worth the search.
    constexpr size_t most_candidates = 1000;
    std::string nearest = name_for_attribute(name, {bound.names().begin(), bound.names().end()});
    if (nearest.empty() && bound.names().size() <= most_candidates) {
      const std::vector<std::string_view> legal(bound.names().begin(), bound.names().end());
      nearest = nearest_spelling(name, legal);
    }
    reader_.fail_at(place, fmt::format("`{}` is not defined here", name),
                    nearest.empty() ? fmt::format("bind it first: - let: {{{}: ..}}", name)
                                    : fmt::format("did you mean `{}`?", nearest));
  }

  void check_references(const Statement& statement) {
    if (statement.optimizer) {
      require_one_of(*statement.optimizer, "optimizer", optimizer_names());
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
    if (statement.modules) {
      for (const std::string& module : statement.modules->value) {
        require_one_of({module, statement.modules->place}, "module", module_names());
      }
    }
  }

  std::vector<std::string_view> optimizer_names() const {
    std::vector<std::string_view> names;
    for (const Object& optimizer : scenario_.optimizers) {
      const PlainValue* name = optimizer.find("name");
      if (const auto* text = name == nullptr ? nullptr : name->get_if<std::string>()) {
        names.push_back(*text);
      }
    }
    return names;
  }

  std::vector<std::string_view> module_names() const {
    std::vector<std::string_view> names;
    if (scenario_.model) {
      for (const NamedModel& module : scenario_.model->modules) {
        names.push_back(module.name);
      }
    }
    return names;
  }

  /// An argument of an object that names something of another section.
  void require_argument(const Object& object, std::string_view argument,
                        const std::vector<std::string_view>& legal) {
    const PlainValue* value = object.find(argument);
    if (const auto* text = value == nullptr ? nullptr : value->get_if<std::string>()) {
      require_one_of({*text, value->place}, argument, legal);
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
                      legal.empty() ? fmt::format("the scenario has no {}", what)
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
