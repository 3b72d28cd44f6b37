#pragma once

#include <cstddef>
#include <optional>

#include "properties/diagnosis/calls.hpp"
#include "properties/diagnosis/decision.hpp"
#include "properties/diagnosis/skipped_turn.hpp"

namespace lockstep {

/// What let one side run a statement of the user, and not the other.
struct StatementGuard {
  Decision decision;
  SiteId statement{};
};

/// The guard of the statement in which the strategy makes `call`, where the two sides took it
/// differently. Nothing for a call at a statement of its own, whose guards are those of its site.
std::optional<StatementGuard> guard_of_statement(const Sites& sites, const Call& call,
                                                 const Decisions& mine, const Decisions& theirs);

/// A call that one side makes in a statement which the other does not run.
struct CallOfStatement {
  SkippedTurn turn;
  SiteId statement{};
  bool never_reached = false;  ///< the other side runs it at no time
};
/// Whether the other side runs a statement of the same kind in the other way of the same turn of
/// this guard: then it runs that in its place, and no statement is missing.
bool runs_other_way(const Sites& sites, const StatementGuard& guard, const Decisions& theirs);

/// The first one up to `position`, where calls of the two sides differ: calls of a forward look the
/// same in every forward, so they differ only after it.
std::optional<CallOfStatement> call_of_statement(const Sites& sites, const DecidedCalls& left,
                                                 const DecidedCalls& right, size_t position);

}  // namespace lockstep
