#pragma once

#include <optional>

#include "model/network/layer_kind.hpp"

namespace lockstep {

/// The output's height and width where a window slides over the image [channels, height, width];
/// complains and returns nothing when the window does not fit.
std::optional<Pair> window_grid(const LayerContext& context, const Pair& kernel, const Pair& stride,
                                const Pair& padding, const Pair& dilation,
                                ArgumentReader& arguments);

}  // namespace lockstep
