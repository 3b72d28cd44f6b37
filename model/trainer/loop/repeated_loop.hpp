#pragma once

#include <cstdint>
#include <optional>

#include "model/trainer/loop/training.hpp"

namespace lockstep {

/// The passes of a loop of a fit, as one level of periods of the world.
class RepeatedLoop {
 public:
  /// `length`: passes of a period.
  RepeatedLoop(Training& training, int32_t level, int64_t length)
      : training_(training), level_(level), length_(length) {}

  /// Said before each pass: `was_alike`: the period before did what those up to `until` do. Gives
  /// how many passes the world has left out, which are counted; the loop goes on behind them.
  int64_t left_out(int64_t pass, bool was_alike, int64_t until);
  int64_t length() const { return length_; }

 private:
  Training& training_;
  int32_t level_;
  int64_t length_;
  std::optional<int64_t> last_;  ///< the pass that began a period last
  Counted at_last_;
};

}  // namespace lockstep
