#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/metric/metric_object.hpp"
#include "model/scenario/program_spec.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

/// Names the exchanges of metrics: by the statement that causes them, or the end of an epoch where
/// a logged metric is computed, then by metric and state.
class MetricSites {
 public:
  /// Sites by member and state of a metric that this place computes. The place is known.
  const std::vector<StateSites>& of(SiteId place, const std::string& metric) const;
  void add(SiteId place, const MetricDefinition& definition, Sites& sites);

 private:
  std::map<std::pair<SiteId, std::string>, std::vector<StateSites>> sites_;
};

/// Adds the sites of every statement that may compute a metric.
MetricSites add_metric_sites(const ProgramSpec& program,
                             const std::vector<MetricDefinition>& metrics,
                             const std::map<std::string, LogSites>& log_sites, Sites& sites);

const MetricDefinition* find_metric(const std::vector<MetricDefinition>& metrics,
                                    const std::string& written);
/// The metric that a `log` hands over as an object, or null.
const MetricDefinition* logged_metric(const std::vector<MetricDefinition>& metrics,
                                      const Expression& value);

}  // namespace lockstep
