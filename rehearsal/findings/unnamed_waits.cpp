#include "rehearsal/findings/unnamed_waits.hpp"

#include <fmt/format.h>

#include <map>

#include "properties/diagnosis/divergence.hpp"
#include "properties/diagnosis/last_operation.hpp"

namespace lockstep::cli {

namespace {

bool is_of_user(const OneRun& run, SiteId id) {
  const Site* site = run.preparation.sites.find(id);
  return site != nullptr && site->line > 0;
}

std::string call_at(const OneRun& run, SiteId id) {
  const Site* site = run.preparation.sites.find(id);
  return site == nullptr ? "a call" : site->description;
}

/// Ranks whose program is stuck, by the place of the last thing that it did.
std::map<SiteId, RankSet> stuck_at(const OneRun& run) {
  std::map<SiteId, RankSet> ranks;
  for (int32_t rank = 0; rank < run.result.journal->ranks(); ++rank) {
    if (end_of_rank(run.result, rank) == RankEnd::Kind::stuck) {
      ranks[last_operation(*run.result.journal, rank).site].add(rank);
    }
  }
  return ranks;
}

}  // namespace

std::optional<Finding> unnamed_waits(const OneRun& run) {
  const std::map<SiteId, RankSet> stuck = stuck_at(run);
  if (!run.preparation.placement.traits.gathers_rows || stuck.size() < 2) {
    return std::nullopt;
  }
  auto first = stuck.begin();
  for (auto other = stuck.begin(); other != stuck.end(); ++other) {
    const bool is_better = is_of_user(run, other->first) != is_of_user(run, first->first)
                               ? is_of_user(run, other->first)
                               : other->second.size() < first->second.size();
    first = is_better ? other : first;
  }
  const auto& [site, waiting] = *first;
  RankSet others;
  for (const auto& [place, ranks] : stuck) {
    if (place != site) {
      others.add(ranks);
    }
  }
  Finding finding =
      finding_of("LS101", Level::error,
                 fmt::format("{} {} forever in {}: {} never call{} it", waiting.phrase(),
                             waiting.size() == 1 ? "waits" : "wait", call_at(run, site),
                             others.phrase(), others.size() == 1 ? "s" : ""));
  finding.ranks = waiting;
  finding.sites.push_back({site, SiteRole::subject, "on " + waiting.phrase()});
  for (const auto& [place, ranks] : stuck) {
    finding.did.push_back({ranks, 0, "waits", place});
  }
  finding.why.text =
      "HorovodStrategy joins all ranks before each of its calls: the join of one call met that of "
      "another, and the calls that follow have different names";
  finding.fix = {"let every rank make the call, as often as the others"};
  return finding;
}

}  // namespace lockstep::cli
