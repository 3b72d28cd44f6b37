#include "rehearsal/findings/host_memory.hpp"

#include <fmt/format.h>

#include "properties/invariants/memory_fits.hpp"
#include "rehearsal/findings/finding_cause.hpp"
#include "rehearsal/run/node_memory.hpp"

namespace lockstep::cli {

namespace {

SiteId place_of(const OneRun& run) {
  const Scenario& scenario = *run.preparation.scenario;
  return first_written({scenario.trainer ? place_of_key(scenario.trainer->strategy) : nullptr,
                        scenario.model ? &scenario.model->place : nullptr});
}

std::vector<std::string> remedy_of(const NodeMemory& node, bool on_cpu) {
  const Bytes batches = node.of(Purpose::input);
  if (batches > node.needed - batches) {
    return {"lower batch_size: most of it holds batches"};
  }
  const char* more_nodes = "or use more nodes: where ranks divide the state, each then holds less";
  if (on_cpu) {
    return {"run fewer ranks on a node, or divide parameters or optimizer state among them;",
            more_nodes};
  }
  return {"offload less, or nothing where GPUs have room for it;", more_nodes};
}

}  // namespace

std::vector<Finding> host_memory_findings(const OneRun& run) {
  const std::vector<NodeMemory> nodes = node_memory_of(run);
  RankSet full;
  RankSet ranks;
  for (const NodeMemory& node : nodes) {
    if (!node.fits()) {
      full.add(node.node);
      ranks.add(node.ranks);
    }
  }
  if (full.empty()) {
    return {};
  }
  const NodeMemory& most = *fullest(nodes);
  Finding finding = finding_of(
      "LS401", Level::error,
      fmt::format("host memory of node{} {}: {} needed, {} there", full.size() == 1 ? "" : "s",
                  full.text(), bytes_text(most.needed.count()), bytes_text(most.capacity.count())));
  finding.ranks = ranks;
  if (const SiteId site = place_of(run); site != no_site) {
    finding.sites.push_back({site, SiteRole::subject, fmt::format("on {}", ranks.phrase())});
  }
  finding.why.text = fmt::format("together {} hold at their peaks: {}", most.ranks.phrase(),
                                 memory_text(most.by_purpose));
  finding.follows.push_back("the kernel ends a process of the node, or memory cannot be pinned");
  finding.fix = remedy_of(most, run.preparation.placement.cpu);
  return {finding};
}

}  // namespace lockstep::cli
