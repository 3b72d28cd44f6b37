#pragma once

#include <cstdint>

#include "model/core/values.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

// Reference arithmetic of torch.nn.MaxPool2d, AvgPool2d and AdaptiveAvgPool2d. Input and output
// are [planes, height, width], planes the batch times the channels.

enum class Pooling : uint8_t {
  greatest,         ///< of the window without padding, the first of equals; NaN is the greatest
  average,          ///< of the window with padding, which counts as zeros
  adaptive_average  ///< of the rows floor(i in / out) .. ceil((i + 1) in / out), columns alike
};

struct PoolingShape {
  Pooling pooling = Pooling::greatest;
  Pool2dArguments window{};  ///< of what is not adaptive
  int64_t planes = 1;
  Pair input{1, 1};
  Pair output{1, 1};
};

void pool2d_forward(const Values& input, const PoolingShape& shape, Values& output);
/// To the greatest element, or to each in equal parts; overwrites.
void pool2d_input_gradient(const Values& input, const Values& output_gradient,
                           const PoolingShape& shape, Values& input_gradient);

}  // namespace lockstep
