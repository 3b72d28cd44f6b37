#pragma once

#include <map>
#include <string>
#include <vector>

#include "properties/logged/metric_is_global.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Values logged by one device that takes all ranks' batches, and evaluates each loader in one.
struct SingleDevice {
  std::map<std::string, double> metrics;
  /// `metrics` if it evaluates each sample as often as the ranks do; empty: they do so once.
  std::map<std::string, double> of_taken_samples{};
  /// Its training came to the same parameters, so that what the network gives may be compared.
  bool network_is_alike = false;
};

/// Every key that the ranks logged, with what speaks against averaging it. `single_device`: null
/// where none ran.
std::vector<GlobalMetric> logged_metrics(const OneRun& run, const SingleDevice* single_device);

/// LS301, LS302 and LS307 of a run that all ranks ended well; without values of one device.
std::vector<Finding> metric_findings(const OneRun& run);
/// Findings that need the values of one device.
std::vector<Finding> metric_findings(const OneRun& run, const SingleDevice& single_device);

/// Whether something is logged at the end of an epoch of this stage.
bool logs_in_stage(const OneRun& run, std::string_view stage);

/// Whether comparing with one device would say more about some key.
bool wants_reference(const OneRun& run);

/// Whether sync_dist reduces over the devices of a node alone, and there are several (ddp2).
bool stays_in_node(const OneRun& run);

}  // namespace lockstep::cli
