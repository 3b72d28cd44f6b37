#include "rehearsal/findings/calls_of_threads.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

namespace lockstep::cli {

namespace {

/// When a thread beside the main one called collectives of a group, and where the strategy did so.
struct CallsOfThread {
  Time first = Time::max();
  Time last{};
  std::optional<SiteId> site{};  ///< the strategy's places are in no file
};

std::map<GroupId, CallsOfThread> calls_of_lane(const OneRun& run, int32_t number) {
  std::map<GroupId, CallsOfThread> groups;
  const LaneJournal& lane = run.result.journal->lane(0, number);
  lane.for_each([&](const Row& row) {
    if (row.row != RowKind::op || !is_collective(row.kind)) {
      return;
    }
    CallsOfThread& calls = groups[row.group];
    const Time issue = lane.completion(row.sequence).issue;
    calls.first = std::min(calls.first, issue);
    calls.last = std::max(calls.last, issue);
    const Site* site = run.preparation.sites.find(row.site);
    if (!calls.site && site != nullptr && site->file.empty()) {
      calls.site = row.site;
    }
  });
  return groups;
}

// One thread beside the main one is ordered with it: both agree on what is called (Horovod), or
// have groups of their own (Bagua). Two of them that call at the same time are not.
std::optional<SiteId> call_of_a_thread(const OneRun& run) {
  std::map<GroupId, std::vector<CallsOfThread>> before;
  const Journal& journal = *run.result.journal;
  for (int32_t lane = 1; journal.ranks() > 0 && lane < journal.lanes(0); ++lane) {
    for (const auto& [group, calls] : calls_of_lane(run, lane)) {
      const bool overlaps = std::ranges::any_of(before[group], [&](const CallsOfThread& other) {
        return calls.first <= other.last && other.first <= calls.last;
      });
      if (overlaps && calls.site) {
        return calls.site;
      }
      before[group].push_back(calls);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Finding> unordered_calls(const OneRun& run) {
  const std::optional<SiteId> call =
      run.result.journal == nullptr ? std::nullopt : call_of_a_thread(run);
  if (!call) {
    return {};
  }
  Finding finding = lockstep::finding_of(
      "LS103", Level::warning, "threads of a rank call collectives of one group in no fixed order");
  finding.sites.push_back({*call, SiteRole::subject, "called from a thread of its own"});
  finding.why.text =
      "Gloo runs what follows a collective in its threads, so that nothing orders these calls with "
      "others of the rank: ranks that disagree on the order abort, or wait forever";
  finding.fix = {"use nccl, or one bucket (a larger bucket_cap_mb) without find_unused_parameters"};
  return {finding};
}

}  // namespace lockstep::cli
