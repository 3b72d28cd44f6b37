#pragma once

#include <optional>
#include <string>

#include "model/program/journal.hpp"
#include "properties/diagnosis/decision.hpp"
#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What kept ranks from a statement that others came to.
struct GuardOfCall {
  SiteId site{};
  ChoiceKind kind = ChoiceKind::branch;
  std::string condition;
};

/// The innermost `if` or `repeat` around the statement that the first of these ranks took
/// differently. Nothing: there is none.
std::optional<Decision> guard_of_statement(const OneRun& run, SiteId statement,
                                           const RankSet& callers, const RankSet& lackers);

/// Names it in the finding: in a site, and as the reason.
std::optional<GuardOfCall> name_guard(const OneRun& run, SiteId statement, const RankSet& callers,
                                      const RankSet& lackers, Finding& finding);

}  // namespace lockstep::cli
