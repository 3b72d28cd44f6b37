#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/core/values.hpp"

namespace lockstep {

/// A parameter as a checkpoint holds it, with what its optimizer keeps for it.
struct SavedTensor {
  Values value;
  std::vector<Values> state;
  int64_t steps = 0;                ///< that the optimizer has taken
  std::array<double, 2> numbers{};  ///< that it counts beside
  bool operator==(const SavedTensor&) const = default;
};

}  // namespace lockstep
