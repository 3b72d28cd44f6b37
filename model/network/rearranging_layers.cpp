// Layers that only place elements: Upsample, PatchSequence, FirstPosition, Permute, PatchMerging.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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

// torch counts the batch as dimension 0, which stays where it is.
void fill_permute(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const std::vector<int64_t> dims = arguments.sizes("dims", std::nullopt);
  layer.kind = LayerKind::permute;
  be_view(context, layer);
  if (!arguments.ok()) {
    return;
  }
  std::vector<int64_t> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> all(context.input.size() + 1);
  std::iota(all.begin(), all.end(), int64_t{0});
  if (sorted != all || dims.front() != 0) {
    arguments.complain(
        fmt::format("dims [{}] are no order of the dimensions of a batch of {}",
                    fmt::join(dims, ", "), text_of(context.input)),
        fmt::format("write 0, the batch, and then each of 1 to {} once", context.input.size()));
    return;
  }
  PermuteArguments permute;
  for (size_t i = 1; i < dims.size(); ++i) {
    permute.order.push_back(static_cast<size_t>(dims[i] - 1));
    layer.output[i - 1] = context.input[permute.order.back()];
  }
  layer.arguments = std::move(permute);
}

// Forward reads and writes every element. Backward makes for each of the four parts a whole with
// zeros and puts the part there (torch slices twice), and sums the four.
void fill_patch_merging(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::patch_merging;
  if (!has_dimensions(context, 3, "[height, width, channels]", arguments)) {
    return;
  }
  layer.output = {(context.input[0] + 1) / 2, (context.input[1] + 1) / 2, 4 * context.input[2]};
  const int64_t whole = elements_of(layer.output);
  layer.work = {Work{.elements = elements_of(context.input) + whole}, Work{.elements = 15 * whole},
                Work{.runs = false}};
}

}  // namespace

std::vector<LayerKindEntry> rearranging_layer_kinds() {
  return {
      {"Upsample", {"size", "scale_factor", "mode"}, fill_upsample},
      {"PatchSequence", {"channels", "class_token"}, fill_patch_sequence},
      {"FirstPosition", {}, fill_first_position},
      {"Permute", {"dims"}, fill_permute},
      {"PatchMerging", {}, fill_patch_merging},
  };
}

}  // namespace lockstep
