#include "rehearsal/findings/guard_of_call.hpp"

#include <fmt/format.h>

namespace lockstep::cli {

namespace {

// The last operation of the statement on the main lane.
int64_t last_row_at(const Journal& journal, int32_t rank, SiteId statement) {
  int64_t row_number = 0;
  int64_t last = -1;
  journal.lane(rank, 0).for_each([&](const Row& row) {
    last = row.row == RowKind::op && row.site == statement ? row_number : last;
    ++row_number;
  });
  return last;
}

}  // namespace

std::optional<Decision> guard_of_statement(const OneRun& run, SiteId statement,
                                           const RankSet& callers, const RankSet& lackers) {
  const Journal& journal = *run.result.journal;
  const int64_t row = last_row_at(journal, callers.first(), statement);
  if (row < 0 || journal.lanes(lackers.first()) == 0) {
    return std::nullopt;
  }
  return guard_that_differs(journal.sites, statement, Decisions(journal, callers.first(), 0), row,
                            Decisions(journal, lackers.first(), 0));
}

std::optional<GuardOfCall> name_guard(const OneRun& run, SiteId statement, const RankSet& callers,
                                      const RankSet& lackers, Finding& finding) {
  const Journal& journal = *run.result.journal;
  const std::optional<Decision> decision = guard_of_statement(run, statement, callers, lackers);
  if (!decision) {
    return std::nullopt;
  }
  const std::vector<Way> ways =
      ways_of(journal, RankSet::all(journal.ranks()), LaneId{0}, *decision);
  std::string text;
  for (const Way& way : ways) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", way.value, way.ranks.phrase());
  }
  const Site* const site = journal.sites.find(decision->site);
  const std::string condition = site == nullptr ? "" : site->condition;
  finding.sites.push_back({decision->site, SiteRole::guard, text});
  finding.why = {fmt::format("{} {} {}", condition.empty() ? "a condition" : "`" + condition + "`",
                             decision->kind == ChoiceKind::repeat ? "repeats" : "is", text),
                 decision->site, ways};
  return GuardOfCall{decision->site, decision->kind, condition};
}

}  // namespace lockstep::cli
