#pragma once

#include <cstdint>

#include "model/core/values.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

/// How parameters start. `small_integers` makes every sum of a property test exact;
/// `uniform_fan_in` is torch's default for Linear and Conv2d: U(-1/sqrt(fan_in), 1/sqrt(fan_in)).
enum class Initialisation : uint8_t { small_integers, uniform_fan_in };

/// A pure function of the key: element i depends on key and i alone.
Values integer_initial_values(DType dtype, int64_t elements, uint64_t key);  ///< in -2 .. 2
Values uniform_initial_values(DType dtype, int64_t elements, int64_t fan_in, uint64_t key);

/// How parameter `tensor` of the layer starts: as the scenario says, else as follows. Norms start
/// as torch's: weight 1, bias 0. The fan-in of a weight is the product of its sizes but the first,
/// of a bias that of its layer's weight; of an embedding 1.
Values initial_parameter(const Layer& layer, size_t tensor, DType dtype, Initialisation how,
                         uint64_t key);
/// As the scenario says, else running_var starts at 1, all others at 0.
Values initial_buffer(const BufferTensor& buffer, DType dtype);

}  // namespace lockstep
