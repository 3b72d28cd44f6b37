#include "rehearsal/findings/node_memory.hpp"

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

constexpr const char* more_nodes =
    "or use more nodes: where ranks divide the state, each then holds less";

std::vector<std::string> remedy_of(const NodeMemory& node, bool on_cpu) {
  const Bytes batches = node.of(Purpose::input);
  if (batches > node.needed - batches) {
    return {"lower batch_size: most of it holds batches"};
  }
  if (on_cpu) {
    return {"run fewer ranks on a node, or divide parameters or optimizer state among them;",
            more_nodes};
  }
  return {"offload less, or nothing where GPUs have room for it;", more_nodes};
}

/// What is full, and what follows of it.
struct Full {
  DeviceId where;
  const char* name;
  const char* follows;
};

std::vector<Finding> findings_of(const OneRun& run, const Full& full_of) {
  const std::vector<NodeMemory> nodes = node_memory_of(run, full_of.where);
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
      fmt::format("{} of node{} {}: {} needed, {} there", full_of.name, full.size() == 1 ? "" : "s",
                  full.text(), bytes_text(most.needed.count()), bytes_text(most.capacity.count())));
  finding.ranks = ranks;
  if (const SiteId site = place_of(run); site != no_site) {
    finding.sites.push_back({site, SiteRole::subject, fmt::format("on {}", ranks.phrase())});
  }
  finding.why.text = fmt::format("together {} hold at their peaks: {}", most.ranks.phrase(),
                                 memory_text(most.by_purpose));
  finding.follows.emplace_back(full_of.follows);
  finding.fix = full_of.where == drive_device
                    ? std::vector<std::string>{"offload to host memory what it has room for, or "
                                               "give nodes larger drives;",
                                               more_nodes}
                    : remedy_of(most, run.preparation.placement.cpu);
  return {finding};
}

}  // namespace

std::vector<Finding> node_memory_findings(const OneRun& run) {
  std::vector<Finding> findings =
      findings_of(run, {host_device, "host memory",
                        "the kernel ends a process of the node, or memory cannot be pinned"});
  const std::vector<Finding> of_drive =
      findings_of(run, {drive_device, "NVMe storage", "writing to the drive fails"});
  findings.insert(findings.end(), of_drive.begin(), of_drive.end());
  return findings;
}

}  // namespace lockstep::cli
