#include "rehearsal/findings/calls_of_threads.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::cli {

namespace {

using Places = std::set<SiteId>;

/// When a thread beside the main one called collectives of a group, and where the strategy did so.
struct CallsOfThread {
  Time first = Time::max();
  Time last{};
  Places places{};  ///< of the strategy, which are in no file
};

std::map<GroupId, CallsOfThread> calls_of_lane(const OneRun& run, int32_t number) {
  std::map<GroupId, CallsOfThread> groups;
  const LaneJournal& lane = run.result.journal->lane(0, number);
  lane.for_each([&](const Row& row) {
    if (row.row != RowKind::op || !is_collective(row.kind)) {
      return;
    }
    const Completion done = lane.completion(row.sequence);
    if (done.outcome == Outcome::pending) {
      return;  // in a hang: when it was called is not known
    }
    CallsOfThread& calls = groups[row.group];
    const Time issue = done.issue;
    calls.first = std::min(calls.first, issue);
    calls.last = std::max(calls.last, issue);
    const Site* site = run.preparation.sites.find(row.site);
    if (site != nullptr && site->file.empty()) {
      calls.places.insert(row.site);
    }
  });
  return groups;
}

// One thread beside the main one is ordered with it: both agree on what is called (Horovod), or
// have groups of their own (Bagua). Two of them that call at the same time are not.
Places places_of_unordered_calls(const OneRun& run) {
  std::map<GroupId, std::vector<CallsOfThread>> before;
  Places places;
  const Journal& journal = *run.result.journal;
  for (int32_t lane = 1; journal.ranks() > 0 && lane < journal.lanes(0); ++lane) {
    for (auto& [group, calls] : calls_of_lane(run, lane)) {
      const bool overlaps = std::ranges::any_of(before[group], [&](const CallsOfThread& other) {
        return calls.first <= other.last && other.first <= calls.last;
      });
      if (overlaps) {
        places.insert(calls.places.begin(), calls.places.end());
      }
      before[group].push_back(std::move(calls));
    }
  }
  return places;
}

// A call that a statement of the user makes instead is a defect of its own.
bool is_about(const Finding& finding, const Places& places, const Sites& all) {
  std::vector<SiteId> named;
  for (const RankAction& did : finding.did) {
    named.push_back(did.site);
  }
  for (const FindingSite& site : finding.sites) {
    named.push_back(site.site);
  }
  const auto is_of_user = [&](SiteId id) {
    const Site* site = all.find(id);
    return site != nullptr && !site->file.empty();
  };
  return std::ranges::any_of(named, [&](SiteId id) { return places.contains(id); }) &&
         std::ranges::none_of(named, is_of_user);
}

bool is_about_values(const Finding& finding) {
  return finding.code == "LS305" || finding.code == "LS306" || finding.code == "LS314";
}

void take_over(Finding& finding, const Finding& consequence) {
  if (finding.did.empty()) {  // the first one: the others follow from it
    finding.when = consequence.when;
    finding.call = consequence.call;
    finding.did = consequence.did;
  }
  const bool is_known = std::ranges::find(finding.also, consequence.code) != finding.also.end();
  if (consequence.code != finding.code && !is_known) {
    finding.also.push_back(consequence.code);
  }
  finding.follows.push_back(fmt::format("in this run {}", consequence.title));
}

}  // namespace

void add_unordered_calls(const OneRun& run, std::vector<Finding>& findings) {
  const Places places = run.result.journal == nullptr ? Places{} : places_of_unordered_calls(run);
  if (places.empty()) {
    return;
  }
  Finding finding = lockstep::finding_of(
      "LS103", Level::error, "threads of a rank call collectives of one group in no fixed order");
  finding.sites.push_back({*places.begin(), SiteRole::subject, "called from a thread of its own"});
  finding.why.text =
      "Gloo runs what follows a collective in its threads, so that nothing orders these calls with "
      "others of the rank: ranks that disagree on the order exchange values, abort, or wait "
      "forever";
  finding.fix = {"use nccl, or one bucket (a larger bucket_cap_mb) without find_unused_parameters"};
  const auto order = [&](const Finding& other) {
    return is_about(other, places, run.preparation.sites);
  };
  // Two threads may write their calls in a different order than Gloo gets them, so that values
  // alone show what a real run has exchanged.
  const bool exchanges = is_real(run.world) || std::ranges::any_of(findings, order);
  std::erase_if(findings, [&](const Finding& other) {
    const bool follows = order(other) || (exchanges && is_about_values(other));
    if (follows) {
      take_over(finding, other);
    }
    return follows;
  });
  findings.push_back(std::move(finding));
}

}  // namespace lockstep::cli
