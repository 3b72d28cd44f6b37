#pragma once

#include <cstdint>
#include <optional>

#include "model/scenario/statement.hpp"
#include "rehearsal/findings/finding_cause.hpp"

namespace lockstep::cli {

/// A `return` in one way of a branch keeps ranks from all that stands behind the branch. Nothing
/// where neither way has one.
std::optional<FindingCause> return_in_branch(const OneRun& run, const Statement& branch);

/// Before a call that some ranks lack they may have left the hook: by the branch that parted them
/// first.
std::optional<FindingCause> return_behind(const OneRun& run);

/// Where ranks first went different ways at a branch: the row of one of them. Nothing: they never
/// did.
std::optional<int64_t> first_taken_apart(const OneRun& run, SiteId branch);

}  // namespace lockstep::cli
