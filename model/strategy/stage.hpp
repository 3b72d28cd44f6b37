#pragma once

#include <cstdint>

namespace lockstep {

/// The trainer function that the script called (Lightning's TrainerFn).
enum class Stage : uint8_t { fit, validate, test, predict };

}  // namespace lockstep
