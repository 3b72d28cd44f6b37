#pragma once

#include <cstdint>

namespace lockstep {

/// What the script asked the trainer for (Lightning's TrainerFn).
enum class Stage : uint8_t { fit, validate, test, predict };

}  // namespace lockstep
