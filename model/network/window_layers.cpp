// Attention in windows of an image.
#include <fmt/format.h>

#include <memory>

#include "model/network/layer_kind.hpp"
#include "model/network/window_shape.hpp"

namespace lockstep {

namespace {

bool fits_windows(const WindowAttentionArguments& attention, const LayerContext& context,
                  ArgumentReader& arguments) {
  if (!arguments.ok() || !has_dimensions(context, 3, "[height, width, channels]", arguments) ||
      !is_positive(attention.num_heads, "num_heads", arguments) ||
      !is_positive(attention.window_size[0], "window_size", arguments) ||
      !is_positive(attention.window_size[1], "window_size", arguments)) {
    return false;
  }
  if (attention.dim != context.input[2]) {
    arguments.complain(
        fmt::format("dim is {}, but the input has shape {}", attention.dim, text_of(context.input)),
        fmt::format("set dim to {}", context.input[2]));
  } else if (attention.dim % attention.num_heads != 0) {
    arguments.complain(
        fmt::format("{} heads do not divide dim {}", attention.num_heads, attention.dim),
        "choose num_heads that divides dim");
  }
  for (size_t side = 0; side < 2; ++side) {
    if (attention.shift_size[side] < 0 ||
        attention.shift_size[side] >= attention.window_size[side]) {
      arguments.complain(fmt::format("shift_size {} of windows of {}", attention.shift_size[side],
                                     attention.window_size[side]),
                         "write a shift of at least 0 that is less than window_size");
      return false;
    }
  }
  return arguments.ok();
}

// Projections 8 p c^2 and, in each window of a positions, scores and weighted sum 4 a^2 c; backward
// twice the scores for the gradients of both operands.
void price_windows(const WindowShape& shape, Layer& layer) {
  const int64_t positions = shape.positions();
  const Flops projections(narrow_to_int64(Int128{8} * positions * shape.channels * shape.channels));
  const Flops scores(narrow_to_int64(Int128{4} * positions * shape.area() * shape.channels));
  const int64_t state = positions * shape.channels;
  const int64_t matrix = narrow_to_int64(Int128{positions} * shape.area() * shape.heads);
  // In and out, into windows and back (twice where they are shifted), query, key, value and the
  // weighted sum each way once; the scores around bias and softmax, and the mask of shifted
  // windows.
  const int64_t moved =
      (shape.is_shifted() ? 18 : 14) * state + (shape.is_shifted() ? 8 : 6) * matrix;
  layer.work = {Work{projections + scores, moved}, Work{projections + scores * 2, 2 * moved},
                Work{projections, 6 * state + matrix}};
  // The input in windows; query, key and value as operands of the products, the probabilities, and
  // the weighted sum.
  layer.saves.elements = 5 * state + matrix;
}

/// The row of the table for each pair of positions.
InitialNumbers index_of_distances(const WindowShape& shape) {
  auto index = std::make_shared<std::vector<double>>();
  for (int64_t position = 0; position < shape.area(); ++position) {
    for (int64_t other = 0; other < shape.area(); ++other) {
      index->push_back(static_cast<double>(shape.distance(position, other)));
    }
  }
  return index;
}

void fill_window_attention(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  WindowAttentionArguments attention{.dim = arguments.integer("dim"),
                                     .num_heads = arguments.integer("num_heads"),
                                     .window_size = arguments.pair("window_size"),
                                     .shift_size = arguments.pair("shift_size", Pair{0, 0}),
                                     .qkv_bias = arguments.boolean("qkv_bias", true),
                                     .proj_bias = arguments.boolean("proj_bias", true)};
  layer.kind = LayerKind::window_attention;
  layer.arguments = attention;
  arguments.only("attention_dropout", 0.0);
  arguments.only("dropout", 0.0);
  if (!fits_windows(attention, context, arguments)) {
    return;
  }
  layer.output = context.input;
  const WindowShape shape = window_shape(attention, context.input);
  const int64_t width = attention.dim;
  layer.parameters.push_back({"qkv.weight", {3 * width, width}});
  if (attention.qkv_bias) {
    layer.parameters.push_back({"qkv.bias", {3 * width}});
  }
  layer.parameters.push_back({"proj.weight", {width, width}});
  if (attention.proj_bias) {
    layer.parameters.push_back({"proj.bias", {width}});
  }
  layer.parameters.push_back(
      {"relative_position_bias_table", {shape.distances(), attention.num_heads}});
  layer.buffers.push_back({"relative_position_index",
                           {shape.area() * shape.area()},
                           DType::int64,
                           index_of_distances(shape)});
  const Int128 matrix = Int128{shape.positions()} * shape.area() * shape.heads;
  if (matrix > most_elements) {
    arguments.complain("the windows of an image have too many scores", "write smaller windows");
    return;
  }
  price_windows(shape, layer);
}

}  // namespace

std::vector<LayerKindEntry> window_layer_kinds() {
  return {{"WindowAttention",
           {"dim", "window_size", "shift_size", "num_heads", "qkv_bias", "proj_bias",
            "attention_dropout", "dropout"},
           fill_window_attention}};
}

}  // namespace lockstep
