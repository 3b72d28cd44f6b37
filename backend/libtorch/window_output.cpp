#include "backend/libtorch/window_output.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "model/network/window_shape.hpp"

namespace lockstep::backend {

namespace {

at::Tensor permuted(const Layer& layer, const at::Tensor& input) {
  std::vector<int64_t> dims{0};
  for (const size_t dimension : std::get<PermuteArguments>(layer.arguments).order) {
    dims.push_back(static_cast<int64_t>(dimension) + 1);
  }
  return input.permute(dims).contiguous();
}

at::Tensor merged_patches(const at::Tensor& image) {
  const at::Tensor whole =
      at::constant_pad_nd(image, {0, 0, 0, image.size(2) % 2, 0, image.size(1) % 2});
  const auto part = [&whole](int64_t row, int64_t column) {
    return whole.slice(1, row, std::nullopt, 2).slice(2, column, std::nullopt, 2);
  };
  return at::cat({part(0, 0), part(1, 0), part(0, 1), part(1, 1)}, -1);
}

/// [samples, height, width, channels] in rows of windows, [samples * windows, area, channels].
at::Tensor windows_of(const at::Tensor& image, const WindowShape& shape) {
  return image
      .view({image.size(0), shape.padded[0] / shape.window[0], shape.window[0],
             shape.padded[1] / shape.window[1], shape.window[1], image.size(-1)})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({-1, shape.area(), image.size(-1)});
}

at::Tensor image_of(const at::Tensor& windows, const WindowShape& shape, int64_t samples) {
  return windows
      .view({samples, shape.padded[0] / shape.window[0], shape.padded[1] / shape.window[1],
             shape.window[0], shape.window[1], windows.size(-1)})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({samples, shape.padded[0], shape.padded[1], windows.size(-1)});
}

/// -100 where two positions of a window are neighbours only because the image was turned round.
at::Tensor mask_of_windows(const WindowShape& shape, const at::TensorOptions& options) {
  at::Tensor regions = at::zeros({1, shape.padded[0], shape.padded[1], 1}, options);
  double region = 0;
  const auto bounds = [&shape](size_t side) {
    const int64_t size = shape.padded[side];
    const int64_t shift = shape.shift[side];
    return std::vector<int64_t>{0, shift == 0 ? size : size - shape.window[side], size - shift,
                                size};
  };
  const std::vector<int64_t> rows = bounds(0);
  const std::vector<int64_t> columns = bounds(1);
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      regions.slice(1, rows[row], rows[row + 1])
          .slice(2, columns[column], columns[column + 1])
          .fill_(region++);
    }
  }
  const at::Tensor windows = windows_of(regions, shape).squeeze(-1);
  const at::Tensor apart = windows.unsqueeze(1) - windows.unsqueeze(2);
  return at::zeros_like(apart).masked_fill(apart.ne(0), -100.0);
}

at::Tensor bias_of_windows(const WindowShape& shape, const at::Tensor& table) {
  std::vector<int64_t> index;
  for (int64_t position = 0; position < shape.area(); ++position) {
    for (int64_t other = 0; other < shape.area(); ++other) {
      index.push_back(shape.distance(position, other));
    }
  }
  const at::Tensor rows = at::tensor(index, at::kLong).to(table.device());
  return table.index_select(0, rows)
      .view({shape.area(), shape.area(), shape.heads})
      .permute({2, 0, 1})
      .unsqueeze(0);
}

at::Tensor window_attention(const Layer& layer, const LayerTensors& tensors) {
  const auto& arguments = std::get<WindowAttentionArguments>(layer.arguments);
  const WindowShape shape = window_shape(arguments, layer.input);
  size_t next = 0;
  const auto take = [&](bool has) { return has ? tensors.parameters.at(next++) : at::Tensor(); };
  const at::Tensor in_weight = take(true);
  const at::Tensor in_bias = take(arguments.qkv_bias);
  const at::Tensor out_weight = take(true);
  const at::Tensor out_bias = take(arguments.proj_bias);
  const at::Tensor table = take(true);
  const int64_t samples = tensors.input.size(0);
  at::Tensor image = at::constant_pad_nd(tensors.input, {0, 0, 0, shape.padded[1] - shape.image[1],
                                                         0, shape.padded[0] - shape.image[0]});
  if (shape.is_shifted()) {
    image = at::roll(image, {-shape.shift[0], -shape.shift[1]}, {1, 2});
  }
  const at::Tensor windows = windows_of(image, shape);
  const at::Tensor projected =
      at::linear(windows, in_weight, in_bias)
          .view({windows.size(0), shape.area(), 3, shape.heads, shape.head_width()})
          .permute({2, 0, 3, 1, 4});
  const double scale = 1 / std::sqrt(static_cast<double>(shape.head_width()));
  at::Tensor scores = at::matmul(projected[0] * scale, projected[1].transpose(-2, -1)) +
                      bias_of_windows(shape, table);
  if (shape.is_shifted()) {
    const at::Tensor mask =
        mask_of_windows(shape, scores.options().requires_grad(false)).unsqueeze(1);
    scores = (scores.view({samples, shape.windows(), shape.heads, shape.area(), shape.area()}) +
              mask.unsqueeze(0))
                 .view({-1, shape.heads, shape.area(), shape.area()});
  }
  const at::Tensor sum = at::matmul(at::softmax(scores, -1), projected[2])
                             .transpose(1, 2)
                             .reshape({-1, shape.area(), shape.channels});
  at::Tensor output = image_of(at::linear(sum, out_weight, out_bias), shape, samples);
  if (shape.is_shifted()) {
    output = at::roll(output, {shape.shift[0], shape.shift[1]}, {1, 2});
  }
  return output.narrow(1, 0, shape.image[0]).narrow(2, 0, shape.image[1]).contiguous();
}

}  // namespace

std::optional<at::Tensor> window_output(const Layer& layer, const LayerTensors& tensors) {
  switch (layer.kind) {
    case LayerKind::layer_scale: return tensors.input * tensors.parameters.at(0).unsqueeze(0);
    case LayerKind::permute: return permuted(layer, tensors.input);
    case LayerKind::patch_merging: return merged_patches(tensors.input);
    case LayerKind::window_attention: return window_attention(layer, tensors);
    default: return std::nullopt;
  }
}

}  // namespace lockstep::backend
