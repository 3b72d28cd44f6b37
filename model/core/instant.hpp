#pragma once

#include <cstdint>

#include "model/core/position.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// When a fault begins: a time since the start of the run, an optimizer step, or an epoch.
struct Instant {
  enum class Kind : uint8_t { time, step, epoch };
  Kind kind = Kind::time;
  Time time{};        ///< of `time`
  int64_t count = 0;  ///< of `step` and `epoch`, from 0

  /// Whether a rank at that position, at `now` on its host, has reached this instant.
  bool has_come(const Position& position, Time now) const {
    switch (kind) {
      case Kind::time: return now >= time;
      case Kind::step: return position.step >= count;
      case Kind::epoch: return position.epoch >= count;
    }
    return false;
  }
  bool is_start() const { return kind == Kind::time && time == Time{}; }
};

}  // namespace lockstep
