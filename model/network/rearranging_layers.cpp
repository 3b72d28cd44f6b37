// Layers that only place elements: Upsample, PatchSequence, FirstPosition.
#include <fmt/format.h>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

/// Reads the smaller and writes the greater of the two, backward the other way round.
void price_placing(const LayerContext& context, Layer& layer) {
  const int64_t moved = elements_of(context.input) + elements_of(layer.output);
  layer.work = {Work{.elements = moved}, Work{.elements = moved}, Work{.runs = false}};
}

void fill_upsample(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const UpsampleArguments upsample{arguments.pair("scale_factor")};
  if (arguments.text("mode", "nearest") != "nearest") {
    arguments.lack("only the mode `nearest` of Upsample is modelled",
                   "write {Upsample: {scale_factor: 2}}, or use ConvTranspose2d");
  }
  layer.kind = LayerKind::upsample;
  layer.arguments = upsample;
  if (!arguments.ok() || !has_dimensions(context, 3, image_layout, arguments) ||
      !is_positive(upsample.scale_factor[0], "scale_factor", arguments) ||
      !is_positive(upsample.scale_factor[1], "scale_factor", arguments)) {
    return;
  }
  layer.output = {context.input[0],
                  narrow_to_int64(Int128{context.input[1]} * upsample.scale_factor[0]),
                  narrow_to_int64(Int128{context.input[2]} * upsample.scale_factor[1])};
  if (has_possible_size(layer, arguments)) {
    price_placing(context, layer);
  }
}

void fill_patch_sequence(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const PatchSequenceArguments patches{arguments.integer("channels"),
                                       arguments.boolean("class_token", true)};
  layer.kind = LayerKind::patch_sequence;
  layer.arguments = patches;
  if (!arguments.ok() || !has_dimensions(context, 3, image_layout, arguments) ||
      !has_channels(context, patches.channels, "channels", arguments)) {
    return;
  }
  const int64_t positions = context.input[1] * context.input[2];
  layer.output = {positions + (patches.class_token ? 1 : 0), patches.channels};
  price_placing(context, layer);
  if (patches.class_token) {
    layer.parameters.push_back({"class_token", {patches.channels}});
    layer.work[static_cast<size_t>(Pass::weight_gradient)] = {.elements = patches.channels};
  }
}

void fill_first_position(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::first_position;
  if (!has_dimensions(context, 2, "[positions, features]", arguments)) {
    return;
  }
  layer.output = {context.input[1]};
  // A view forward; backward fills what was not chosen with zeros.
  layer.work = {Work{.elements = 2 * context.input[1]},
                Work{.elements = elements_of(context.input) + context.input[1]},
                Work{.runs = false}};
}

}  // namespace

std::vector<LayerKindEntry> rearranging_layer_kinds() {
  return {
      {"Upsample", {"size", "scale_factor", "mode"}, fill_upsample},
      {"PatchSequence", {"channels", "class_token"}, fill_patch_sequence},
      {"FirstPosition", {}, fill_first_position},
  };
}

}  // namespace lockstep
