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

// torchmetrics/metric.py, jit_distributed_available: a metric object asks torch.distributed whether
// there are other ranks, and XLA does not initialise it. The values of one rank would be taken for
// those of all.
void refuse_unsynchronised_metrics(Preparation& preparation) {
  if (preparation.placement.device != DeviceType::tpu || preparation.options.world_size == 1) {
    return;
  }
  for (const NamedMetric& metric : preparation.scenario->metrics) {
    add_problem(preparation, Kind::unsupported, metric.metric.place,
                fmt::format("`{}`: metric objects on several TPU devices are not modelled, because "
                            "TorchMetrics does not synchronise them there",
                            metric.name),
                "log a number with sync_dist: true, or use devices: 1");
  }
}

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
