#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "properties/diagnosis/calls.hpp"
#include "properties/diagnosis/decision.hpp"

namespace lockstep {

/// One rank's calls on a communicator and what it decided on the way.
struct DecidedCalls {
  const std::vector<Call>& calls;
  const Decisions& decisions;
  LaneId lane{};  ///< of the decisions
};

/// Calls of a library look the same in every batch, so a rank that leaves out a batch is paired one
/// batch apart from there on, and only a call of another kind shows it.
struct SkippedTurn {
  size_t position = 0;      ///< of the first call that is paired with one of a later turn
  bool left_calls = false;  ///< the left side makes it, the right side left it out
  Decision decision;        ///< of the side that makes it: the other took it differently
};

/// The first pair of calls before `end` that stand in different turns of an `if` or a `repeat`
/// which the two sides took differently in the turn of the earlier one. Nothing where there is
/// none.
std::optional<SkippedTurn> skipped_turn(const DecidedCalls& left, const DecidedCalls& right,
                                        size_t end);

}  // namespace lockstep
