// Conv1d, Conv2d and ConvTranspose2d.
#include <fmt/format.h>

#include <algorithm>

#include "model/network/window_grid.hpp"

namespace lockstep {

namespace {

bool groups_divide(const Conv2dArguments& conv, ArgumentReader& arguments) {
  if (conv.in_channels % conv.groups == 0 && conv.out_channels % conv.groups == 0) {
    return true;
  }
  arguments.complain(fmt::format("groups {} divides not both in_channels {} and out_channels {}",
                                 conv.groups, conv.in_channels, conv.out_channels),
                     "choose groups that divides both");
  return false;
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
  arguments.only("padding_mode", std::string("zeros"));
  layer.kind = LayerKind::conv2d;
  layer.arguments = conv;
  if (!arguments.ok() || !has_dimensions(context, 3, image_layout, arguments) ||
      !is_positive(conv.out_channels, "out_channels", arguments) ||
      !is_positive(conv.groups, "groups", arguments) ||
      !has_channels(context, conv.in_channels, "in_channels", arguments)) {
    return;
  }
  if (!groups_divide(conv, arguments)) {
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

/// One number, or a list of one.
int64_t along(std::string_view name, std::optional<int64_t> otherwise, ArgumentReader& arguments) {
  const Shape given = arguments.sizes(name, otherwise);
  if (given.size() == 1) {
    return given.front();
  }
  arguments.complain(fmt::format("`{}` of a layer of one dimension is {}", name, text_of(given)),
                     "write one number");
  return 1;
}

// A convolution over an image of height 1; only the shapes of input, output and weight differ.
void fill_conv1d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  Conv2dArguments conv{.in_channels = arguments.integer("in_channels"),
                       .out_channels = arguments.integer("out_channels"),
                       .kernel_size = {1, along("kernel_size", std::nullopt, arguments)},
                       .stride = {1, along("stride", 1, arguments)},
                       .padding = {0, along("padding", 0, arguments)},
                       .dilation = {1, along("dilation", 1, arguments)},
                       .groups = arguments.integer("groups", 1),
                       .bias = arguments.boolean("bias", true)};
  arguments.only("padding_mode", std::string("zeros"));
  layer.kind = LayerKind::conv1d;
  layer.arguments = conv;
  if (!arguments.ok() || !has_dimensions(context, 2, "[channels, length]", arguments) ||
      !is_positive(conv.out_channels, "out_channels", arguments) ||
      !is_positive(conv.groups, "groups", arguments) ||
      !has_channels(context, conv.in_channels, "in_channels", arguments) ||
      !groups_divide(conv, arguments)) {
    return;
  }
  const Shape image = {context.input[0], 1, context.input[1]};
  const auto grid = window_grid({image, context.flash_attention}, conv.kernel_size, conv.stride,
                                conv.padding, conv.dilation, arguments);
  if (!grid) {
    return;
  }
  layer.output = {conv.out_channels, (*grid)[1]};
  layer.parameters.push_back(
      {"weight", {conv.out_channels, conv.in_channels / conv.groups, conv.kernel_size[1]}});
  if (conv.bias) {
    layer.parameters.push_back({"bias", {conv.out_channels}});
  }
  if (has_possible_size(layer, arguments)) {
    price_conv2d(conv, layer);
  }
}

/// (size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1, as torch documents;
/// complains and returns nothing where nothing is left.
std::optional<Pair> spread_grid(const LayerContext& context, const ConvTranspose2dArguments& given,
                                ArgumentReader& arguments) {
  const Conv2dArguments& conv = given.mirrored;
  Pair grid{};
  for (size_t side = 0; side < 2; ++side) {
    const int64_t more = given.output_padding[side];
    if (conv.kernel_size[side] < 1 || conv.stride[side] < 1 || conv.dilation[side] < 1 ||
        conv.padding[side] < 0 || more < 0 ||
        more >= std::max(conv.stride[side], conv.dilation[side])) {
      arguments.complain(
          "ConvTranspose2d takes a kernel, stride and dilation above 0, padding from 0, and "
          "output_padding below the stride or the dilation",
          "change the argument that is out of range");
      return std::nullopt;
    }
    grid[side] = (context.input[side + 1] - 1) * conv.stride[side] - 2 * conv.padding[side] +
                 conv.dilation[side] * (conv.kernel_size[side] - 1) + more + 1;
    if (grid[side] < 1) {
      arguments.complain(fmt::format("nothing is left of the input {} behind a padding of {}",
                                     text_of(context.input), conv.padding[side]),
                         "use less padding");
      return std::nullopt;
    }
  }
  return grid;
}

// Each input element is spread over kernel height * width * out_channels / groups outputs.
void fill_conv_transpose2d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const int64_t in_channels = arguments.integer("in_channels");
  const int64_t out_channels = arguments.integer("out_channels");
  const ConvTranspose2dArguments given{
      .mirrored = {.in_channels = out_channels,
                   .out_channels = in_channels,
                   .kernel_size = arguments.pair("kernel_size"),
                   .stride = arguments.pair("stride", Pair{1, 1}),
                   .padding = arguments.pair("padding", Pair{0, 0}),
                   .dilation = arguments.pair("dilation", Pair{1, 1}),
                   .groups = arguments.integer("groups", 1),
                   .bias = arguments.boolean("bias", true)},
      .output_padding = arguments.pair("output_padding", Pair{0, 0})};
  arguments.only("padding_mode", std::string("zeros"));
  const Conv2dArguments& conv = given.mirrored;
  layer.kind = LayerKind::conv_transpose2d;
  layer.arguments = given;
  if (!arguments.ok() || !has_dimensions(context, 3, image_layout, arguments) ||
      !is_positive(out_channels, "out_channels", arguments) ||
      !is_positive(conv.groups, "groups", arguments) ||
      !has_channels(context, in_channels, "in_channels", arguments) ||
      !groups_divide(conv, arguments)) {
    return;
  }
  const auto grid = spread_grid(context, given, arguments);
  if (!grid) {
    return;
  }
  layer.output = {out_channels, (*grid)[0], (*grid)[1]};
  layer.parameters.push_back(
      {"weight",
       {in_channels, out_channels / conv.groups, conv.kernel_size[0], conv.kernel_size[1]}});
  if (conv.bias) {
    layer.parameters.push_back({"bias", {out_channels}});
  }
  if (!has_possible_size(layer, arguments)) {
    return;
  }
  const int64_t spread = out_channels / conv.groups * conv.kernel_size[0] * conv.kernel_size[1];
  const Flops flops(narrow_to_int64(Int128{2} * elements_of(context.input) * spread));
  const int64_t moved = elements_of(context.input) + elements_of(layer.output);
  layer.work = {Work{flops, moved}, Work{flops, moved}, Work{flops, moved}};
  layer.saves.input = true;
}

}  // namespace

std::vector<LayerKindEntry> convolution_layer_kinds() {
  const std::vector<std::string_view> positions = {"in_channels", "out_channels", "kernel_size",
                                                   "stride",      "padding",      "dilation",
                                                   "groups",      "bias",         "padding_mode"};
  return {
      {"Conv1d", positions, fill_conv1d},
      {"Conv2d", positions, fill_conv2d},
      {"ConvTranspose2d",
       {"in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding",
        "groups", "bias", "dilation", "padding_mode"},
       fill_conv_transpose2d},
  };
}

}  // namespace lockstep
