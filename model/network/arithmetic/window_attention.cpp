#include "model/network/arithmetic/window_attention.hpp"

#include <cmath>
#include <vector>

#include "model/network/arithmetic/biased_attention.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// What torchvision adds to the score of positions that are no neighbours but for the shift.
constexpr double masked_score = -100;
constexpr int64_t outside = -1;

/// The positions of the windows of an image: where each is in the image, and in which region of the
/// shifted image, whose regions do not see each other.
class WindowPositions {
 public:
  explicit WindowPositions(const WindowShape& shape) : shape_(shape) {
    const int64_t across = shape.padded[1] / shape.window[1];
    for (int64_t window = 0; window < shape.windows(); ++window) {
      for (int64_t i = 0; i < shape.area(); ++i) {
        const Pair shifted{window / across * shape.window[0] + i / shape.window[1],
                           window % across * shape.window[1] + i % shape.window[1]};
        add(shifted);
      }
    }
  }
  /// Its number in the image; `outside` in the margin of zeros.
  int64_t pixel(int64_t window, int64_t position) const { return pixels_[at(window, position)]; }
  bool are_apart(int64_t window, int64_t position, int64_t other) const {
    return regions_[at(window, position)] != regions_[at(window, other)];
  }

 private:
  size_t at(int64_t window, int64_t position) const {
    return static_cast<size_t>(window * shape_.area() + position);
  }
  void add(const Pair& shifted) {
    Pair source{};
    int region = 0;
    for (size_t side = 0; side < 2; ++side) {
      source[side] = (shifted[side] + shape_.shift[side]) % shape_.padded[side];
      const bool in_last_window = shifted[side] >= shape_.padded[side] - shape_.window[side];
      const bool came_round = shifted[side] >= shape_.padded[side] - shape_.shift[side];
      const bool counts = shape_.is_shifted() && shape_.shift[side] > 0;
      region = 3 * region + (counts ? (in_last_window ? 1 : 0) + (came_round ? 1 : 0) : 0);
    }
    const bool is_inside = source[0] < shape_.image[0] && source[1] < shape_.image[1];
    pixels_.push_back(is_inside ? source[0] * shape_.image[1] + source[1] : outside);
    regions_.push_back(region);
  }

  const WindowShape& shape_;
  std::vector<int64_t> pixels_;
  std::vector<int> regions_;
};

/// Of so many samples the windows, one after the other, their numbers 0 in the margin.
Values in_windows(const Values& image, int64_t samples, const WindowShape& shape,
                  const WindowPositions& positions, DType dtype) {
  Values windows(dtype, samples * shape.positions() * shape.channels);
  int64_t row = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    for (int64_t window = 0; window < shape.windows(); ++window) {
      for (int64_t i = 0; i < shape.area(); ++i, ++row) {
        const int64_t pixel = positions.pixel(window, i);
        const int64_t from = (sample * shape.image[0] * shape.image[1] + pixel) * shape.channels;
        for (int64_t c = 0; pixel != outside && c < shape.channels; ++c) {
          windows.set(row * shape.channels + c, image.number(from + c));
        }
      }
    }
  }
  return windows;
}

/// The reverse: every pixel is in one window.
void out_of_windows(const Values& windows, int64_t samples, const WindowShape& shape,
                    const WindowPositions& positions, Values& image) {
  int64_t row = 0;
  for (int64_t sample = 0; sample < samples; ++sample) {
    for (int64_t window = 0; window < shape.windows(); ++window) {
      for (int64_t i = 0; i < shape.area(); ++i, ++row) {
        const int64_t pixel = positions.pixel(window, i);
        const int64_t to = (sample * shape.image[0] * shape.image[1] + pixel) * shape.channels;
        for (int64_t c = 0; pixel != outside && c < shape.channels; ++c) {
          image.set(to + c, windows.number(row * shape.channels + c));
        }
      }
    }
  }
}

BiasedAttentionShape scores_shape(int64_t samples, const WindowShape& shape) {
  const int64_t width = shape.channels;
  return {.groups = samples * shape.windows(),
          .heads = shape.heads,
          .width = shape.head_width(),
          .scale = 1 / std::sqrt(static_cast<double>(shape.head_width())),
          .query = {shape.area(), 3 * width, 0},
          .key = {shape.area(), 3 * width, width},
          .value = {shape.area(), 3 * width, 2 * width},
          .sum = {shape.area(), width, 0}};
}

/// The number that is added to a score.
template <class T>
auto window_bias(const WindowShape& shape, const WindowPositions& positions,
                 const std::vector<T>& table) {
  return
      [&shape, &positions, &table](int64_t group, int64_t head, int64_t position, int64_t other) {
        const int64_t row = shape.distance(position, other);
        const bool apart = positions.are_apart(group % shape.windows(), position, other);
        return table[static_cast<size_t>(row * shape.heads + head)] +
               (apart ? static_cast<T>(masked_score) : T{0});
      };
}

/// Query, key and value side by side, and the weighted sum, of the positions of all windows.
struct WindowStates {
  Values windows{};
  Values projected{};
  Values attended{};
};

WindowStates attend_windows(const Values& input, const WindowAttentionWeights& weights,
                            int64_t samples, const WindowShape& shape,
                            const WindowPositions& positions, DType dtype) {
  const int64_t rows = samples * shape.positions();
  const int64_t width = shape.channels;
  WindowStates states;
  states.windows = in_windows(input, samples, shape, positions, dtype);
  states.projected = Values(dtype, rows * 3 * width);
  linear_forward(states.windows, *weights.qkv, weights.qkv_bias, rows, width, 3 * width,
                 states.projected);
  states.attended = Values(dtype, rows * width);
  with_accumulator({&input, weights.table, &states.attended}, [&]<class T>(T) {
    const std::vector<T> projected = numbers_of<T>(states.projected);
    const std::vector<T> table = numbers_of<T>(*weights.table);
    std::vector<T> sum(static_cast<size_t>(rows * width));
    biased_attention_forward(scores_shape(samples, shape), projected, projected, projected,
                             window_bias(shape, positions, table), sum);
    store_numbers(sum, states.attended);
  });
  return states;
}

/// The gradient of query, key and value from that of the weighted sum.
Values projected_gradient(const WindowStates& states, const Values& attended_gradient,
                          const Values& table, int64_t samples, const WindowShape& shape,
                          const WindowPositions& positions, Values* table_gradient) {
  Values gradient(states.projected.dtype(), states.projected.size());
  with_accumulator({&states.projected, &table, &gradient}, [&]<class T>(T) {
    const std::vector<T> projected = numbers_of<T>(states.projected);
    const std::vector<T> numbers = numbers_of<T>(table);
    const std::vector<T> sum_gradient = numbers_of<T>(attended_gradient);
    std::vector<T> all(projected.size());
    std::vector<T> of_table(numbers.size());
    biased_attention_backward(scores_shape(samples, shape), projected, projected, projected,
                              window_bias(shape, positions, numbers), sum_gradient,
                              BiasedAttentionGradients<T>{all, all, all},
                              [&](int64_t, int64_t head, int64_t position, int64_t other, T slope) {
                                const int64_t row = shape.distance(position, other);
                                of_table[static_cast<size_t>(row * shape.heads + head)] += slope;
                              });
    store_numbers(all, gradient);
    if (table_gradient != nullptr) {
      accumulate_numbers(of_table, *table_gradient);
    }
  });
  return gradient;
}

void add_product_gradients(const Values& input, const Values& output_gradient, int64_t rows,
                           int64_t in, int64_t out, Values* weight, Values* bias) {
  if (weight != nullptr) {
    linear_weight_gradient(input, output_gradient, rows, in, out, *weight);
  }
  if (bias != nullptr) {
    bias_weight_gradient(output_gradient, rows, out, *bias);
  }
}

}  // namespace

void window_attention_forward(const Values& input, const WindowAttentionWeights& weights,
                              int64_t samples, const WindowShape& shape, Values& output) {
  const WindowPositions positions(shape);
  const WindowStates states =
      attend_windows(input, weights, samples, shape, positions, output.dtype());
  const int64_t rows = samples * shape.positions();
  Values projection(output.dtype(), rows * shape.channels);
  linear_forward(states.attended, *weights.projection, weights.projection_bias, rows,
                 shape.channels, shape.channels, projection);
  out_of_windows(projection, samples, shape, positions, output);
}

void window_attention_backward(const Values& input, const WindowAttentionWeights& weights,
                               const Values& output_gradient, int64_t samples,
                               const WindowShape& shape, Values* input_gradient,
                               const WindowAttentionGradients& gradients) {
  const WindowPositions positions(shape);
  const DType dtype = output_gradient.dtype();
  const WindowStates states = attend_windows(input, weights, samples, shape, positions, dtype);
  const int64_t rows = samples * shape.positions();
  const int64_t width = shape.channels;
  const Values gradient = in_windows(output_gradient, samples, shape, positions, dtype);
  add_product_gradients(states.attended, gradient, rows, width, width, gradients.projection,
                        gradients.projection_bias);
  Values attended(dtype, rows * width);
  linear_input_gradient(gradient, *weights.projection, rows, width, width, attended);
  const Values projected = projected_gradient(states, attended, *weights.table, samples, shape,
                                              positions, gradients.table);
  add_product_gradients(states.windows, projected, rows, width, 3 * width, gradients.qkv,
                        gradients.qkv_bias);
  if (input_gradient != nullptr) {
    Values windows(dtype, rows * width);
    linear_input_gradient(projected, *weights.qkv, rows, width, 3 * width, windows);
    out_of_windows(windows, samples, shape, positions, *input_gradient);
  }
}

}  // namespace lockstep
