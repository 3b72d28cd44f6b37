#include "model/network/layer_kind.hpp"

#include <fmt/format.h>

namespace lockstep {

std::vector<LayerKindEntry> layer_kinds() {
  std::vector<LayerKindEntry> all;
  for (const auto& group :
       {dense_layer_kinds(), spatial_layer_kinds(), attention_layer_kinds(), plain_layer_kinds()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

std::optional<LayerKindEntry> find_layer_kind(std::string_view name) {
  for (LayerKindEntry& entry : layer_kinds()) {
    if (entry.name == name) {
      return entry;
    }
  }
  return std::nullopt;
}

void fill_pointwise(const LayerContext& context, Layer& layer) {
  layer.output = context.input;
  const int64_t moved = 2 * elements_of(context.input);
  layer.work = {Work{.elements = moved}, Work{.elements = moved}, Work{.runs = false}};
}

bool has_dimensions(const LayerContext& context, size_t count, std::string_view layout,
                    ArgumentReader& arguments) {
  if (context.input.size() == count) {
    return true;
  }
  arguments.complain(
      fmt::format("the input has shape {}, not {}", text_of(context.input), layout),
      fmt::format("give the network's input as {} or change the layer before", layout));
  return false;
}

bool is_positive(int64_t value, std::string_view name, ArgumentReader& arguments) {
  if (value > 0) {
    return true;
  }
  arguments.complain(fmt::format("{} is {}", name, value), fmt::format("write {} above 0", name));
  return false;
}

}  // namespace lockstep
