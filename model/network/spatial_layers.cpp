// Layers over channels and space: BatchNorm, Conv2d, pooling.
#include <fmt/format.h>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

constexpr std::string_view image_layout = "[channels, height, width]";

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

/// Normalising over batch and space needs two reads of the input (statistics, then the result) and
/// one write; its backward is one kernel: two reads of input and output gradient, one write.
void fill_batch_norm(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  BatchNormArguments norm{.num_features = arguments.integer("num_features"),
                          .eps = arguments.number("eps", 1e-5),
                          .momentum = arguments.number("momentum", 0.1),
                          .affine = arguments.boolean("affine", true),
                          .track_running_stats = arguments.boolean("track_running_stats", true)};
  layer.kind = LayerKind::batch_norm;
  layer.arguments = norm;
  if (!arguments.ok() || !has_channels(context, norm.num_features, "num_features", arguments)) {
    return;
  }
  layer.output = context.input;
  if (norm.affine) {
    layer.parameters.push_back({"weight", {norm.num_features}});
    layer.parameters.push_back({"bias", {norm.num_features}});
  }
  if (norm.track_running_stats) {
    layer.buffers.push_back({"running_mean", {norm.num_features}});
    layer.buffers.push_back({"running_var", {norm.num_features}});
    layer.buffers.push_back({"num_batches_tracked", {}, DType::int64});
  }
  const int64_t elements = elements_of(context.input);
  layer.work = {Work{.elements = 3 * elements}, Work{.elements = 5 * elements},
                Work{.runs = false}};
  layer.saves.input = true;
}

void fill_batch_norm1d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  if (context.input.empty() || context.input.size() > 2) {
    arguments.complain(fmt::format("BatchNorm1d takes [features] or [features, length], not {}",
                                   text_of(context.input)),
                       "use BatchNorm2d for images, or Flatten first");
    return;
  }
  fill_batch_norm(context, arguments, layer);
}

void fill_batch_norm2d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  if (has_dimensions(context, 3, image_layout, arguments)) {
    fill_batch_norm(context, arguments, layer);
  }
}

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

/// The output's height and width; complains and returns nothing when the window does not fit.
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

// Every output element is a dot product of kernel height * width * in_channels / groups pairs.
void price_conv2d(const Conv2dArguments& conv, Layer& layer) {
  const int64_t dot = conv.in_channels / conv.groups * conv.kernel_size[0] * conv.kernel_size[1];
  const Flops flops(narrow_to_int64(Int128{2} * elements_of(layer.output) * dot));
  const int64_t moved = elements_of(layer.input) + elements_of(layer.output);
  layer.work = {Work{flops, moved}, Work{flops, moved}, Work{flops, moved}};
  layer.saves.input = true;
}

void fill_conv2d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  Conv2dArguments conv{.in_channels = arguments.integer("in_channels"),
                       .out_channels = arguments.integer("out_channels"),
                       .kernel_size = arguments.pair("kernel_size"),
                       .stride = arguments.pair("stride", Pair{1, 1}),
                       .padding = arguments.pair("padding", Pair{0, 0}),
                       .dilation = arguments.pair("dilation", Pair{1, 1}),
                       .groups = arguments.integer("groups", 1),
                       .bias = arguments.boolean("bias", true)};
  layer.kind = LayerKind::conv2d;
  layer.arguments = conv;
  if (!arguments.ok() || !has_dimensions(context, 3, image_layout, arguments) ||
      !is_positive(conv.out_channels, "out_channels", arguments) ||
      !is_positive(conv.groups, "groups", arguments) ||
      !has_channels(context, conv.in_channels, "in_channels", arguments)) {
    return;
  }
  if (conv.in_channels % conv.groups != 0 || conv.out_channels % conv.groups != 0) {
    arguments.complain(fmt::format("groups {} divides not both in_channels {} and out_channels {}",
                                   conv.groups, conv.in_channels, conv.out_channels),
                       "choose groups that divides both");
    return;
  }
  const auto grid =
      window_grid(context, conv.kernel_size, conv.stride, conv.padding, conv.dilation, arguments);
  if (!grid) {
    return;
  }
  layer.output = {conv.out_channels, (*grid)[0], (*grid)[1]};
  layer.parameters.push_back({"weight",
                              {conv.out_channels, conv.in_channels / conv.groups,
                               conv.kernel_size[0], conv.kernel_size[1]}});
  if (conv.bias) {
    layer.parameters.push_back({"bias", {conv.out_channels}});
  }
  if (has_possible_size(layer, arguments)) {
    price_conv2d(conv, layer);
  }
}

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
  fill_pool2d(context, arguments, layer);
  layer.saves.fixed = 8_B * (arguments.ok() ? elements_of(layer.output) : 0);  // int64 indices
}

void fill_avg_pool2d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::avg_pool2d;
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
  const std::vector<std::string_view> norm = {"num_features", "eps", "momentum", "affine",
                                              "track_running_stats"};
  const std::vector<std::string_view> pool = {"kernel_size", "stride", "padding"};
  return {
      {"BatchNorm1d", norm, fill_batch_norm1d},
      {"BatchNorm2d", norm, fill_batch_norm2d},
      {"Conv2d",
       {"in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups",
        "bias"},
       fill_conv2d},
      {"MaxPool2d", pool, fill_max_pool2d},
      {"AvgPool2d", pool, fill_avg_pool2d},
      {"AdaptiveAvgPool2d", {"output_size"}, fill_adaptive_avg_pool2d},
  };
}

}  // namespace lockstep
