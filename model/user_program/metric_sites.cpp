#include "model/user_program/metric_sites.hpp"

#include <fmt/core.h>

#include "model/scenario/expressions_of.hpp"

namespace lockstep {

const MetricDefinition* find_metric(const std::vector<MetricDefinition>& metrics,
                                    const std::string& written) {
  const std::string name = metric_name_of(written);
  for (const MetricDefinition& metric : metrics) {
    if (metric.name == name) {
      return &metric;
    }
  }
  return nullptr;
}

const MetricDefinition* logged_metric(const std::vector<MetricDefinition>& metrics,
                                      const Expression& value) {
  const ExpressionNode& root = value.root();
  return root.kind == ExpressionNode::Kind::name ? find_metric(metrics, root.name) : nullptr;
}

const std::vector<StateSites>& MetricSites::of(SiteId place, const std::string& metric) const {
  const auto found = sites_.find({place, metric});
  ensure(found != sites_.end(), "every place that computes a metric has its sites");
  return found->second;
}

void MetricSites::add(SiteId place, const MetricDefinition& definition, Sites& sites) {
  if (sites_.count({place, definition.name}) != 0) {
    return;
  }
  const Site base = *sites.find(place);
  std::vector<StateSites>& all = sites_[{place, definition.name}];
  int order = 0;
  const auto add_states = [&](const MetricDefinition& one) {
    StateSites states;
    for (const MetricStateSpec& state : one.metric->exchanged_states()) {
      Site site = base;
      const std::string of = definition.is_collection()
                                 ? fmt::format("`{}` of `{}`", one.name, definition.name)
                                 : fmt::format("`{}`", definition.name);
      site.description =
          fmt::format("{} of the metric {}, state `{}`", base.description, of, state.name);
      site.part = fmt::format("{}metric {}, state `{}`", base.part.empty() ? "" : base.part + ", ",
                              of, state.name);
      site.data = fmt::format("{}.{}", definition.name, state.name);
      site.order = ++order;
      states.push_back(sites.add(site));
    }
    all.push_back(std::move(states));
  };
  if (definition.is_collection()) {
    for (const MetricDefinition& member : definition.members) {
      add_states(member);
    }
  } else {
    add_states(definition);
  }
}

MetricSites add_metric_sites(const ProgramSpec& program,
                             const std::vector<MetricDefinition>& metrics,
                             const std::map<std::string, LogSites>& log_sites, Sites& sites) {
  MetricSites known;
  for_each_statement(program, [&](const Statement& statement) {
    const bool computes = statement.kind == StatementKind::compute ||
                          (statement.kind == StatementKind::update && statement.result);
    if (computes && statement.name) {
      if (const MetricDefinition* metric = find_metric(metrics, statement.name->value)) {
        known.add(site_of(statement), *metric, sites);
      }
    }
    const auto add_logged = [&](const std::string& key, const Expression& value) {
      const auto place = log_sites.find(key);
      const MetricDefinition* metric = logged_metric(metrics, value);
      if (metric != nullptr) {
        known.add(place == log_sites.end() ? site_of(statement) : place->second.epoch, *metric,
                  sites);
      }
    };
    if (statement.log.value) {
      add_logged(value_or(statement.log.name, std::string()), statement.log.value->value);
    }
    for (const Binding& binding : statement.log.dictionary) {
      add_logged(binding.name, binding.expression);
    }
  });
  return known;
}

}  // namespace lockstep
