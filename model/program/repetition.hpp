#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "model/core/buffer.hpp"
#include "model/core/ids.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// How deep loops nest, from the innermost.
inline constexpr int32_t period_levels = 3;
namespace period_level {
inline constexpr int32_t micro_batches = 0;  ///< of a pipeline, within a step
inline constexpr int32_t batches = 1;
inline constexpr int32_t epochs = 2;
}  // namespace period_level

/// What a program keeps from one period to the next and acts by: two periods go on alike only if it
/// is the same, tickets relative to those that are submitted next.
struct ProgramMemory {
  std::vector<int64_t> numbers;
  std::vector<Ticket> tickets;
};

/// What a host thread beside the first of its rank acts by, where it stands now.
struct LaneMemory : ProgramMemory {
  std::vector<Slice> values;  ///< that it is going to read
  /// What it counts as the threads with its number do on all ranks: only differences matter.
  int64_t count = 0;
};

/// Knows where such a thread stands, at any time while that waits.
class DescribedLane {
 public:
  virtual ~DescribedLane() = default;
  /// Nothing: what the thread does next follows from more than this.
  virtual std::optional<LaneMemory> memory() const = 0;
};

/// Periods in a row that were run, and what is left out repeats. Or entries of the same list, from
/// one on up to this one, that come again.
struct RepeatedPeriods {
  int64_t first = 0;  ///< by number
  int64_t end = 0;    ///< behind the last
  int64_t times = 1;
  Time time{};   ///< how long all of them take
  Time later{};  ///< how much later than these they begin the first time
  std::optional<size_t> entries_from{};

  Time total() const { return time * times; }
  /// Whether both stand for the same.
  bool does_as(const RepeatedPeriods& other) const {
    return first == other.first && end == other.end && times == other.times;
  }
};

/// How often periods from one number to another (exclusive) come, by all entries together.
void for_each_repeated(const std::vector<RepeatedPeriods>& all,
                       const std::function<void(int64_t, int64_t, int64_t)>& count);

/// What a rank is to leave out at the beginning of a period.
struct PeriodsLeftOut {
  /// Of the period that it runs then. A rank numbers the periods that it runs, in all loops of a
  /// level.
  int64_t number = 0;
  int64_t periods = 0;
  std::shared_ptr<const std::vector<RepeatedPeriods>> repeats{};  ///< null: nothing is left out
};

/// The program of a rank without a loop of its own, which does what loops of other ranks ask of it:
/// when they repeat themselves, so does it.
class PeriodFollower : public DescribedLane {
 public:
  /// Rank 0 begins a period, behind those that it leaves out, while this program waits.
  virtual void period_begins(int32_t level, const PeriodsLeftOut& left_out) = 0;
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
  int32_t level = period_level::batches;  ///< a period encloses those of lower levels
  bool first = false;    ///< what the loop did before differs, or there was nothing
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
  int64_t step = 0;        ///< optimizer step with which the first of them begins
  int64_t epoch = 0;       ///< likewise
  int64_t steps_most = 0;  ///< that one of them begins
  int64_t epochs = 0;      ///< that one of them takes
  /// Periods before it in which a step lies that ends in it: what is said of the step is theirs.
  int64_t reaches_back = 0;

  int64_t kind_of(int64_t period) const { return kinds == nullptr ? kind : kinds->kind_of(period); }
  int64_t alike_from(int64_t period) const {
    return kinds == nullptr ? alike - period : kinds->alike_from(period);
  }
};

}  // namespace lockstep
