#include "properties/invariants/memory_fits.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "properties/diagnosis/remedy.hpp"

namespace lockstep {

namespace {

// The device that came nearest to its limit; null when the run does not say.
const DeviceMemory* fullest(const RunResult& run, int32_t rank) {
  const DeviceMemory* found = nullptr;
  if (static_cast<size_t>(rank) < run.memory.size()) {
    for (const auto& [device, memory] : run.memory[static_cast<size_t>(rank)]) {
      const bool fuller =
          found == nullptr || memory.capacity - memory.peak < found->capacity - found->peak;
      found = !is_off_device(device) && fuller ? &memory : found;
    }
  }
  return found;
}

Finding finding_of(const RunResult& run, SiteId site, const RankSet& ranks) {
  const int32_t first = ranks.first();
  const std::string& message = run.ends[static_cast<size_t>(first)].message;
  Finding finding = lockstep::finding_of("LS401", Level::error,
                                         fmt::format("{} {} out of device memory", ranks.phrase(),
                                                     ranks.size() == 1 ? "runs" : "run"));
  finding.ranks = ranks;
  if (site != no_site) {
    finding.sites.push_back({site, SiteRole::subject, fmt::format("on {}", ranks.phrase())});
  }
  finding.why.text = message;
  finding.did.push_back({ranks, 0, "out of memory", site});
  if (const DeviceMemory* memory = fullest(run, first)) {
    finding.why.ways.push_back(
        {RankSet{first},
         fmt::format("{} of {} held: {}", bytes_text(memory->held.count()),
                     bytes_text(memory->capacity.count()), memory_text(memory->held_by_purpose))});
  }
  const auto all = static_cast<int64_t>(run.ends.size());
  if (ranks.size() < all) {
    finding.follows.push_back("the other ranks do not notice; what they wait for never comes");
  }
  finding.fix = remedy_for("LS401");
  return finding;
}

}  // namespace

std::string memory_text(const MemoryByPurpose& bytes) {
  std::vector<std::pair<Bytes, int>> held;
  for (int purpose = 0; purpose < purpose_count; ++purpose) {
    if (bytes[static_cast<size_t>(purpose)] > Bytes()) {
      held.push_back({bytes[static_cast<size_t>(purpose)], purpose});
    }
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [amount, purpose] : held) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(static_cast<Purpose>(purpose)),
                        bytes_text(amount.count()));
  }
  return text.empty() ? "nothing" : text;
}

std::vector<Finding> memory_fits(const RunResult& run) {
  std::map<SiteId, RankSet> by_site;
  for (size_t rank = 0; rank < run.ends.size(); ++rank) {
    if (run.ends[rank].out_of_memory) {
      by_site[run.ends[rank].site].add(static_cast<int32_t>(rank));
    }
  }
  std::vector<Finding> findings;
  for (const auto& [site, ranks] : by_site) {
    findings.push_back(finding_of(run, site, ranks));
  }
  sort_findings(findings);
  return findings;
}

}  // namespace lockstep
