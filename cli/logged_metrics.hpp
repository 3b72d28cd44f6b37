#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/one_run.hpp"
#include "properties/metric_is_global.hpp"

namespace lockstep::cli {

/// Every key that the ranks logged, with what speaks against averaging it.
/// `single_device`: values by key of a run with all samples of a loader in one batch; null: none.
std::vector<GlobalMetric> logged_metrics(const OneRun& run,
                                         const std::map<std::string, double>* single_device);

/// LS301, LS302 and LS307 of a run that all ranks ended well; without values of one device.
std::vector<Finding> metric_findings(const OneRun& run);
/// The same with them.
std::vector<Finding> metric_findings(const OneRun& run,
                                     const std::map<std::string, double>& single_device);

/// Whether something is logged at the end of an epoch of this stage.
bool logs_in_stage(const OneRun& run, std::string_view stage);

/// Whether comparing with one device would tell more about some key.
bool wants_reference(const OneRun& run);

}  // namespace lockstep::cli
