#pragma once

#include <cstdint>

namespace lockstep {

/// TrainerSpec::accumulate_grad_batches of a map by epoch, {0: 1, 4: 8}; a number is at least 1.
inline constexpr int64_t accumulates_by_epoch = 0;

}  // namespace lockstep
