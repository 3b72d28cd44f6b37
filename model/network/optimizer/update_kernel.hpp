#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/network/optimizer/optimizer_rule.hpp"

namespace lockstep {

/// What the kernel optimizer_step is given beside tensors.
struct UpdateCall {
  OptimizerSettings settings;
  UpdateMoment moment;
  int64_t rows = 0;  ///< of each matrix that the last two dimensions make; 0: there is one at most
  int64_t columns = 1;
};

/// As scalars of the kernel, and read from them.
std::vector<double> scalars_of(const OptimizerSettings& settings, const UpdateMoment& moment,
                               const Shape& parameter);
UpdateCall update_call_from(std::span<const double> scalars);

}  // namespace lockstep
