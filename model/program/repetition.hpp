#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/core/ids.hpp"

namespace lockstep {

/// How deep loops nest: periods of batches, of batches between two rows of a logger, of epochs.
inline constexpr int32_t period_levels = 3;

/// What a program keeps from one period to the next and acts by: two periods go on alike only if it
/// is the same, tickets relative to those that are submitted next.
struct ProgramMemory {
  std::vector<int64_t> numbers;
  std::vector<Ticket> tickets;
};

/// A loop of a program at the beginning of a period, which is one pass or several. All ranks name
/// the same periods in the same order.
struct PeriodStart {
  int32_t level = 0;   ///< of nesting, below period_levels: a period encloses those of lower levels
  bool first = false;  ///< what the loop did before differs, or there was nothing
  /// How many periods from here on, this one included, are of a known kind: what they submit and
  /// decide depends on nothing else that differs between them. Where not `first`, so was the one
  /// before.
  int64_t alike = 0;
  const ProgramMemory* memory = nullptr;  ///< null: it keeps nothing
  /// Periods of a level that are of one kind do the same, in whichever loop.
  int64_t kind = 0;
  /// The kinds of these periods, where they are of several: `alike` numbers. Lasts for the call.
  std::span<const int64_t> kinds{};

  int64_t kind_of(int64_t period) const {
    return kinds.empty() ? kind : kinds[static_cast<size_t>(period)];
  }
};

}  // namespace lockstep
