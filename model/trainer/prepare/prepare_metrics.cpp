// The metrics of a scenario.
#include <fmt/core.h>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

void check_members(Preparation& preparation, const MetricDefinition& definition) {
  for (const MetricDefinition& member : definition.members) {
    if (member.metric->input_kind() != definition.members.front().metric->input_kind()) {
      add_problem(preparation, Kind::unsupported, member.place,
                  fmt::format("`{}`: members that take other inputs than the first are not "
                              "modelled",
                              member.name),
                  "make two collections");
    }
  }
}

}  // namespace

void prepare_metrics(Preparation& preparation, TrainingProgram& program) {
  const Scenario& scenario = *preparation.scenario;
  for (const NamedMetric& metric : scenario.metrics) {
    try {
      program.metrics.push_back(define_metric(metric.name, metric.metric));
      check_members(preparation, program.metrics.back());
    } catch (const MetricError& error) {
      add_problem(preparation, error.unsupported() ? Kind::unsupported : Kind::invalid,
                  error.place(), error.what(), error.remedy());
    }
  }
  if (scenario.program) {
    program.metric_sites =
        add_metric_sites(*scenario.program, program.metrics, program.log_sites, preparation.sites);
  }
}

}  // namespace lockstep
