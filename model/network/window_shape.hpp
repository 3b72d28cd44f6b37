#pragma once

#include <cstdint>

#include "model/network/layer.hpp"

namespace lockstep {

/// The windows of one image of a WindowAttention (Liu et al. 2021, as torchvision computes them):
/// the image is enlarged by zeros to whole windows, and a shift that would be no less than the
/// image is none.
struct WindowShape {
  Pair image{1, 1};
  Pair padded{1, 1};
  Pair window{1, 1};
  Pair shift{0, 0};
  int64_t channels = 1;
  int64_t heads = 1;

  int64_t area() const { return window[0] * window[1]; }
  int64_t windows() const { return padded[0] / window[0] * (padded[1] / window[1]); }
  int64_t positions() const { return padded[0] * padded[1]; }
  int64_t head_width() const { return channels / heads; }
  bool is_shifted() const { return shift[0] + shift[1] > 0; }
  /// Rows of the table of biases: one for each distance of two positions of a window.
  int64_t distances() const { return (2 * window[0] - 1) * (2 * window[1] - 1); }
  /// That of a position to another; both count along the rows of a window.
  int64_t distance(int64_t position, int64_t other) const {
    const int64_t rows = position / window[1] - other / window[1] + window[0] - 1;
    const int64_t columns = position % window[1] - other % window[1] + window[1] - 1;
    return rows * (2 * window[1] - 1) + columns;
  }
};

inline WindowShape window_shape(const WindowAttentionArguments& arguments, const Shape& input) {
  WindowShape shape{
      .window = arguments.window_size, .channels = arguments.dim, .heads = arguments.num_heads};
  for (size_t side = 0; side < 2; ++side) {
    const int64_t window = arguments.window_size[side];
    shape.image[side] = input[side];
    shape.padded[side] = (input[side] + window - 1) / window * window;
    shape.shift[side] = window >= shape.padded[side] ? 0 : arguments.shift_size[side];
  }
  return shape;
}

}  // namespace lockstep
