#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "model/trainer/loop/training.hpp"

namespace lockstep {

/// Whether a loop does in every pass, of any epoch, what it does in the others, as far as the
/// program and the strategy say.
bool passes_are_alike(Training& training);

/// The passes of a loop of a fit, as one level of periods of the world.
class RepeatedLoop {
 public:
  /// `length`: passes of a period. `first`: the pass that begins one.
  RepeatedLoop(Training& training, int32_t level, int64_t length, int64_t first = 0)
      : training_(training), level_(level), length_(length), phase_(first % length) {}

  /// Said before each pass: `was_alike`: the period before is of a known kind, as those up to
  /// `until` are. Gives how many passes the world has left out, which are counted; the loop goes on
  /// behind them. `kind`: PeriodStart::kind.
  int64_t left_out(int64_t pass, bool was_alike, int64_t until, int64_t kind);
  /// The same of periods of several kinds.
  int64_t left_out(int64_t pass, bool was_alike, std::span<const int64_t> kinds);
  int64_t length() const { return length_; }

 private:
  int64_t leave_out(int64_t pass, PeriodStart start);

  Training& training_;
  int32_t level_;
  int64_t length_;
  int64_t phase_;
  std::optional<int64_t> last_;  ///< the pass that began a period last
  Counted at_last_;
};

}  // namespace lockstep
