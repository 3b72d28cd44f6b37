// What is wrong with logged values.
#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/findings/logged_metrics.hpp"

namespace lockstep::cli {

namespace {

std::vector<Finding> judged(const OneRun& run, const SingleDevice* single_device) {
  const bool ended =
      std::all_of(run.result.ends.begin(), run.result.ends.end(),
                  [](const RankEnd& end) { return end.kind == RankEnd::Kind::finished; });
  if (!ended || run.result.hung) {
    return {};
  }
  std::vector<Finding> findings = metric_is_global(logged_metrics(run, single_device));
  for (Finding& finding : findings) {
    if (finding.code == "LS302" && stays_in_node(run)) {
      finding.follows.push_back(
          fmt::format("sync_dist of {} reduces within a node, and never between nodes",
                      run.preparation.strategy));
      finding.fix = {"log a metric object, which gathers from all nodes, or use ddp"};
    }
  }
  return findings;
}

}  // namespace

std::vector<Finding> metric_findings(const OneRun& run) { return judged(run, nullptr); }

std::vector<Finding> metric_findings(const OneRun& run, const SingleDevice& single_device) {
  return judged(run, &single_device);
}

// What sync_dist reduces there are the devices of a node.
bool stays_in_node(const OneRun& run) {
  return run.preparation.placement.traits.layout == ProcessLayout::one_for_each_node &&
         run.preparation.options.world_size > 1;
}

}  // namespace lockstep::cli
