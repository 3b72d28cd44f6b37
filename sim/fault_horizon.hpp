#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/core/ids.hpp"
#include "model/core/instant.hpp"
#include "model/program/repetition.hpp"

namespace lockstep::sim {

/// A fault that begins at an instant, and may end some time later.
struct TimedFault {
  static constexpr int32_t any_rank = -1;  ///< it begins with the first that comes to the instant

  int32_t rank = any_rank;
  Instant at{};
  Time duration = Time::max();
};

/// When faults of a simulated world begin and end: periods before such an instant do not tell what
/// those behind it do. Times are those that are shown: with what has been left out.
class FaultHorizon {
 public:
  explicit FaultHorizon(const std::vector<TimedFault>& faults);

  bool empty() const { return faults_.empty(); }
  /// The host of a rank has come to this position.
  void reached(RankId rank, const Position& position, Time now);
  /// How many have begun or ended by now. Two worlds are alike only if it is the same.
  int64_t changes_by(Time now) const;
  /// How many of these periods come before the next step or epoch with which a fault begins.
  int64_t periods_before(const PeriodStart& start) const;
  /// Some fault has still to begin with a step or epoch.
  bool are_to_begin() const;
  /// Some fault may begin with a step or epoch of this rank, as that counts them.
  bool begins_with(RankId rank) const;
  /// The earliest time after `now` at which a fault begins or ends, as far as that is known.
  Time next_change(Time now) const;

 private:
  struct Planned {
    TimedFault fault;
    std::optional<Time> from;  ///< known from the start, or since a rank has come there
    Time until() const;
  };
  std::vector<Planned> faults_;
};

}  // namespace lockstep::sim
