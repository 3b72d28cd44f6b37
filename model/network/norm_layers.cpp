// Norms over batch, channels or features: BatchNorm, GroupNorm, RMSNorm.
#include <fmt/format.h>

#include <algorithm>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

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

void fill_batch_norm3d(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  if (has_dimensions(context, 4, "[channels, depth, height, width]", arguments)) {
    fill_batch_norm(context, arguments, layer);
  }
}

void fill_group_norm(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const GroupNormArguments norm{.num_groups = arguments.integer("num_groups"),
                                .num_channels = arguments.integer("num_channels"),
                                .eps = arguments.number("eps", 1e-5),
                                .affine = arguments.boolean("affine", true)};
  layer.kind = LayerKind::group_norm;
  layer.arguments = norm;
  if (!arguments.ok() || !is_positive(norm.num_groups, "num_groups", arguments)) {
    return;
  }
  if (context.input.empty()) {
    arguments.complain("GroupNorm takes [channels, ..], not a single number",
                       "use it behind a layer with channels");
    return;
  }
  if (!has_channels(context, norm.num_channels, "num_channels", arguments)) {
    return;
  }
  if (norm.num_channels % norm.num_groups != 0) {
    arguments.complain(
        fmt::format("{} groups do not divide {} channels", norm.num_groups, norm.num_channels),
        "choose num_groups that divides num_channels");
    return;
  }
  fill_pointwise(context, layer);
  if (norm.affine) {
    layer.parameters.push_back({"weight", {norm.num_channels}});
    layer.parameters.push_back({"bias", {norm.num_channels}});
  }
  const int64_t elements = elements_of(context.input);
  layer.work[static_cast<size_t>(Pass::forward)].elements = 3 * elements;
  layer.work[static_cast<size_t>(Pass::input_gradient)].elements = 3 * elements;
  layer.work[static_cast<size_t>(Pass::weight_gradient)].elements = 2 * elements;
  layer.saves.input = true;
  layer.saves.fixed = 8_B * norm.num_groups;  // mean and 1/deviation, fp32
}

void fill_rms_norm(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  RmsNormArguments norm{.normalized_shape = arguments.shape("normalized_shape")};
  if (arguments.has("eps")) {
    norm.eps = arguments.number("eps", 0);
  }
  norm.elementwise_affine = arguments.boolean("elementwise_affine", true);
  layer.kind = LayerKind::rms_norm;
  layer.arguments = norm;
  if (!arguments.ok()) {
    return;
  }
  const Shape& input = context.input;
  const Shape& tail = norm.normalized_shape;
  if (tail.size() > input.size() || !std::equal(tail.rbegin(), tail.rend(), input.rbegin())) {
    arguments.complain(
        fmt::format("normalized_shape {} is not the end of the input's shape {}", text_of(tail),
                    text_of(input)),
        fmt::format("set normalized_shape to [{}]", input.empty() ? 1 : input.back()));
    return;
  }
  fill_pointwise(context, layer);
  if (norm.elementwise_affine) {
    layer.parameters.push_back({"weight", tail});
  }
  layer.work[static_cast<size_t>(Pass::input_gradient)].elements = 3 * elements_of(input);
  layer.work[static_cast<size_t>(Pass::weight_gradient)].elements = 2 * elements_of(input);
  layer.saves.input = true;
  layer.saves.fixed = 4_B * (elements_of(input) / elements_of(tail));  // 1/root mean square, fp32
}

}  // namespace

std::vector<LayerKindEntry> norm_layer_kinds() {
  const std::vector<std::string_view> norm = {"num_features", "eps", "momentum", "affine",
                                              "track_running_stats"};
  return {
      {"BatchNorm1d", norm, fill_batch_norm1d},
      {"BatchNorm2d", norm, fill_batch_norm2d},
      {"BatchNorm3d", norm, fill_batch_norm3d},
      {"GroupNorm", {"num_groups", "num_channels", "eps", "affine"}, fill_group_norm},
      {"RMSNorm", {"normalized_shape", "eps", "elementwise_affine"}, fill_rms_norm},
  };
}

}  // namespace lockstep
