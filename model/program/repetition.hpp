#pragma once

#include <cstdint>
#include <vector>

#include "model/core/ids.hpp"

namespace lockstep {

/// How deep loops nest: periods of batches, of batches between two decisions, of epochs.
inline constexpr int32_t period_levels = 3;

/// What a program keeps from one period to the next and acts by: two periods go on alike only if it
/// is the same, tickets relative to those that are submitted next.
struct ProgramMemory {
  std::vector<int64_t> numbers;
  std::vector<Ticket> tickets;
};

/// Kinds of the periods of a loop: those of one kind do the same.
class PeriodKinds {
 public:
  virtual ~PeriodKinds() = default;
  /// 0: of the period that begins; 1: of the next one.
  virtual int64_t kind_of(int64_t period) const = 0;
  /// How many periods from this one on are of its kind, at least.
  virtual int64_t alike_from(int64_t period) const = 0;
};

/// A loop of a program at the beginning of a period, which is one pass or several. All ranks name
/// the same periods in the same order.
struct PeriodStart {
  int32_t level = 0;   ///< of nesting, below period_levels: a period encloses those of lower levels
  bool first = false;  ///< what the loop did before differs, or there was nothing
  bool forgets = false;  ///< kinds do not tell the periods until now from those to come
  /// How many periods from here on, this one included, are of a known kind: what they submit and
  /// decide depends on nothing else that differs between them. Where not `first`, so was the one
  /// before.
  int64_t alike = 0;
  const ProgramMemory* memory = nullptr;  ///< null: it keeps nothing
  /// Periods of a level that are of one kind do the same, in whichever loop.
  int64_t kind = 0;
  /// Where they are of several kinds. Lasts for the call.
  const PeriodKinds* kinds = nullptr;

  int64_t kind_of(int64_t period) const { return kinds == nullptr ? kind : kinds->kind_of(period); }
  int64_t alike_from(int64_t period) const {
    return kinds == nullptr ? alike - period : kinds->alike_from(period);
  }
};

}  // namespace lockstep
