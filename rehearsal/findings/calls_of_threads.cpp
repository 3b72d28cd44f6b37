#include "rehearsal/findings/calls_of_threads.hpp"

#include <fmt/core.h>

#include <optional>

namespace lockstep::cli {

namespace {

// The first in a thread beside the main one; the strategy's places are in no file.
std::optional<SiteId> call_of_a_thread(const OneRun& run) {
  const Journal& journal = *run.result.journal;
  std::optional<SiteId> found;
  for (int32_t lane = 1; journal.ranks() > 0 && lane < journal.lanes(0) && !found; ++lane) {
    journal.lane(0, lane).for_each([&](const Row& row) {
      const Site* site = run.preparation.sites.find(row.site);
      if (!found && row.row == RowKind::op && is_collective(row.kind) && site != nullptr &&
          site->file.empty()) {
        found = row.site;
      }
    });
  }
  return found;
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
      "others of the rank: ranks that disagree on the order abort, or wait for ever";
  finding.fix = {"use nccl, or one bucket (a larger bucket_cap_mb) without find_unused_parameters"};
  return {finding};
}

}  // namespace lockstep::cli
