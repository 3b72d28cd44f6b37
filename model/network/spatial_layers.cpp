// Pooling, and what it shares with convolutions.
#include <fmt/format.h>

#include "model/network/window_grid.hpp"

namespace lockstep {

namespace {

/// floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, torch's documented formula;
/// nothing when the window does not fit.
std::optional<int64_t> windows(int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                               int64_t dilation) {
  const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
  if (room < 0 || stride < 1 || kernel < 1 || dilation < 1 || padding < 0) {
    return std::nullopt;
  }
  return room / stride + 1;
}

}  // namespace

bool has_channels(const LayerContext& context, int64_t channels, std::string_view argument,
                  ArgumentReader& arguments) {
  if (context.input[0] == channels) {
    return true;
  }
  arguments.complain(fmt::format("{} is {}, but the input {} has {} channels", argument, channels,
                                 text_of(context.input), context.input[0]),
                     fmt::format("set {} to {}", argument, context.input[0]));
  return false;
}

std::optional<Pair> window_grid(const LayerContext& context, const Pair& kernel, const Pair& stride,
                                const Pair& padding, const Pair& dilation,
                                ArgumentReader& arguments) {
  Pair grid{};
  for (size_t side = 0; side < 2; ++side) {
    const auto count =
        windows(context.input[side + 1], kernel[side], stride[side], padding[side], dilation[side]);
    if (!count) {
      arguments.complain(fmt::format("a window of {} x {} does not fit into the input {}",
                                     kernel[0], kernel[1], text_of(context.input)),
                         "use a smaller kernel_size, more padding, or a larger image");
      return std::nullopt;
    }
    grid[side] = *count;
  }
  return grid;
}

namespace {

void fill_pool2d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  Pool2dArguments pool{.kernel_size = arguments.pair("kernel_size")};
  pool.stride = arguments.pair("stride", pool.kernel_size);
  pool.padding = arguments.pair("padding", Pair{0, 0});
  layer.arguments = pool;
  if (!arguments.ok() || !has_dimensions(context, 3, image_layout, arguments)) {
    return;
  }
  const auto grid =
      window_grid(context, pool.kernel_size, pool.stride, pool.padding, {1, 1}, arguments);
  if (!grid) {
    return;
  }
  layer.output = {context.input[0], (*grid)[0], (*grid)[1]};
  if (!has_possible_size(layer, arguments)) {
    return;
  }
  const int64_t moved = elements_of(context.input) + elements_of(layer.output);
  layer.work = {Work{.elements = moved}, Work{.elements = moved}, Work{.runs = false}};
  layer.saves.input = true;
}

void fill_max_pool2d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::max_pool2d;
  arguments.only("dilation", int64_t{1});
  arguments.only("return_indices", false);
  arguments.only("ceil_mode", false);
  fill_pool2d(context, arguments, layer);
  layer.saves.fixed = 8_B * (arguments.ok() ? elements_of(layer.output) : 0);  // int64 indices
}

void fill_avg_pool2d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::avg_pool2d;
  arguments.only("ceil_mode", false);
  arguments.only("count_include_pad", true);
  arguments.only("divisor_override", std::string());
  fill_pool2d(context, arguments, layer);
}

void fill_adaptive_avg_pool2d(const LayerContext& context, ArgumentReader& arguments,
                              Layer& layer) {
  const AdaptivePool2dArguments pool{arguments.pair("output_size")};
  layer.kind = LayerKind::adaptive_avg_pool2d;
  layer.arguments = pool;
  if (!arguments.ok() || !has_dimensions(context, 3, image_layout, arguments) ||
      !is_positive(pool.output_size[0], "output_size", arguments) ||
      !is_positive(pool.output_size[1], "output_size", arguments)) {
    return;
  }
  layer.output = {context.input[0], pool.output_size[0], pool.output_size[1]};
  if (!has_possible_size(layer, arguments)) {
    return;
  }
  const int64_t moved = elements_of(context.input) + elements_of(layer.output);
  layer.work = {Work{.elements = moved}, Work{.elements = moved}, Work{.runs = false}};
  // A single output is computed as a mean, whose backward needs no tensor.
  layer.saves.input = pool.output_size != Pair{1, 1};
}

}  // namespace

std::vector<LayerKindEntry> spatial_layer_kinds() {
  const std::vector<std::string_view> average = {
      "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"};
  const std::vector<std::string_view> greatest = {"kernel_size", "stride",         "padding",
                                                  "dilation",    "return_indices", "ceil_mode"};
  return {
      {"MaxPool2d", greatest, fill_max_pool2d},
      {"AvgPool2d", average, fill_avg_pool2d},
      {"AdaptiveAvgPool2d", {"output_size"}, fill_adaptive_avg_pool2d},
  };
}

}  // namespace lockstep
