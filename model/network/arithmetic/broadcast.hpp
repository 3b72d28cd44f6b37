#pragma once

#include <cstdint>

#include "model/core/values.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

// Products of a tensor and one that may be shorter, as torch broadcasts. Sums run in fp32 (fp64
// where an operand is).

/// `factor` has as many dimensions as `sample`; where it has 1, one number is for all.
struct BroadcastShape {
  int64_t samples = 1;
  Shape sample{};
  Shape factor{};
  bool of_sample = true;  ///< each sample has a factor of its own; else there is one for all
};

/// product = whole factor
void multiply_forward(const Values& whole, const Values& factor, const BroadcastShape& shape,
                      Values& product);
/// The sum of `whole` times `gradient` over what each number of the factor is for.
Values factor_gradient(const Values& whole, const Values& gradient, const BroadcastShape& shape,
                       DType dtype);

}  // namespace lockstep
