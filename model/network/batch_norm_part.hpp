#pragma once

#include <cstdint>

#include "model/core/op.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

/// What a rank computes of a batch norm whose statistics ranks share, between two exchanges: the
/// 4th scalar of a forward and the 2nd of a backward. `statistics` are mean, 1 / deviation and
/// number of values: two numbers for each channel, and one. Operands of forward and backward:
enum class BatchNormPart : uint8_t {
  /// reads the input; writes its statistics |
  /// reads output gradient, input, statistics of all ranks together; writes for each channel the
  /// sums of gradient and of gradient * (input - mean), and adds to the parameters' gradients
  own,
  /// reads input, parameters.., every rank's statistics; writes output, statistics of all ranks
  /// together, the layer's buffers.. |
  /// reads output gradient, input, statistics of all ranks together, their sums, the weight if
  /// there is one; writes the input gradient
  together,
};

/// A batch norm's kernel that is such a part; its arithmetic is the reference in every world.
bool is_batch_norm_part(const Op& op, const Layer& layer);

}  // namespace lockstep
