#include "model/metric/log_dictionary.hpp"

#include <fmt/core.h>

#include <map>

#include "model/metric/definition.hpp"
#include "model/scenario/expressions_of.hpp"

namespace lockstep {

namespace {

using Keys = std::vector<std::string>;

std::map<std::string, Keys> keys_of_collections(const Scenario& scenario) {
  std::map<std::string, Keys> keys;
  for (const NamedMetric& metric : scenario.metrics) {
    try {
      const MetricDefinition definition = define_metric(metric.name, metric.metric);
      for (const MetricDefinition& member : definition.members) {
        keys[metric.name].push_back(definition.key_of(member));
      }
    } catch (const MetricError&) {
      // Reported where metrics are prepared.
    }
  }
  return keys;
}

using KeysOfNames = std::map<std::string, Keys>;

/// By the names that the statements of a hook bind to a collection's values.
KeysOfNames keys_of_results(const Hook& hook, const std::map<std::string, Keys>& collections) {
  KeysOfNames keys;
  for_each_statement(hook.statements, [&](const Statement& statement) {
    const bool gives =
        statement.kind == StatementKind::compute || statement.kind == StatementKind::update;
    if (gives && statement.name && statement.result) {
      const auto of = collections.find(metric_name_of(statement.name->value));
      if (of != collections.end()) {
        keys.emplace(statement.result->value, of->second);
      }
    }
  });
  return keys;
}

Binding entry_of(const ExpressionNode& name, const std::string& key) {
  ExpressionNode index;
  index.kind = ExpressionNode::Kind::index;
  index.place = name.place;
  ExpressionNode text;
  text.place = name.place;
  text.value = Value(key);
  index.parts = {make_expression_node(name), make_expression_node(std::move(text))};
  return {key, Expression(make_expression_node(std::move(index)),
                          fmt::format("{}['{}']", name.name, key))};
}

void spell_out(std::vector<Statement>& statements, const KeysOfNames& keys) {
  for (Statement& statement : statements) {
    if (statement.kind == StatementKind::log_dict && statement.log.value) {
      const ExpressionNode name = statement.log.value->value.root();
      const auto known = keys.find(name.name);
      if (known != keys.end()) {
        for (const std::string& key : known->second) {
          statement.log.dictionary.push_back(entry_of(name, key));
        }
        statement.log.value.reset();
      }
    }
    spell_out(statement.body, keys);
    spell_out(statement.otherwise, keys);
  }
}

}  // namespace

void spell_out_dictionaries(Scenario& scenario) {
  if (!scenario.program) {
    return;
  }
  const std::map<std::string, Keys> collections = keys_of_collections(scenario);
  KeysOfNames of_module;  // bound in any hook
  for (const auto* hooks : {&scenario.program->hooks, &scenario.program->functions}) {
    for (const Hook& hook : *hooks) {
      for (const auto& [name, keys] : keys_of_results(hook, collections)) {
        if (name.starts_with("self.")) {
          of_module.emplace(name, keys);
        }
      }
    }
  }
  for (auto* hooks : {&scenario.program->hooks, &scenario.program->functions}) {
    for (Hook& hook : *hooks) {
      KeysOfNames keys = keys_of_results(hook, collections);
      keys.insert(of_module.begin(), of_module.end());
      for (const NamedMetric& metric : scenario.metrics) {
        keys.erase(metric.name);  // the object itself
      }
      spell_out(hook.statements, keys);
    }
  }
}

}  // namespace lockstep
