#pragma once

#include <cstdint>

#include "model/core/units.hpp"

namespace lockstep {

/// When a fault begins: a time since the start of the run, an optimizer step, or an epoch.
struct Instant {
  enum class Kind : uint8_t { time, step, epoch };
  Kind kind = Kind::time;
  Time time{};        ///< of `time`
  int64_t count = 0;  ///< of `step` and `epoch`, from 0
};

}  // namespace lockstep
