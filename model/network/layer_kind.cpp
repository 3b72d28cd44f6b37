#include "model/network/layer_kind.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

std::vector<LayerKindEntry> layer_kinds() {
  std::vector<LayerKindEntry> all;
  for (const auto& group :
       {dense_layer_kinds(), norm_layer_kinds(), convolution_layer_kinds(), spatial_layer_kinds(),
        attention_layer_kinds(), decoder_layer_kinds(), mixture_layer_kinds(),
        recurrent_layer_kinds(), rearranging_layer_kinds(), plain_layer_kinds(),
        activation_layer_kinds(), scaling_layer_kinds(), window_layer_kinds(), aside_layer_kinds(),
        loss_layer_kinds()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
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

bool has_possible_size(const Layer& layer, ArgumentReader& arguments) {
  std::vector<Shape> shapes = {layer.output};
  for (const ParameterTensor& parameter : layer.parameters) {
    shapes.push_back(parameter.shape);
  }
  for (const BufferTensor& buffer : layer.buffers) {
    shapes.push_back(buffer.shape);
  }
  for (const Shape& shape : shapes) {
    Int128 elements = 1;
    for (const int64_t size : shape) {
      elements = std::min<Int128>(elements * size, Int128{most_elements} + 1);
    }
    if (elements > most_elements) {
      arguments.complain(fmt::format("a tensor of shape {} is beyond all memory", text_of(shape)),
                         "write smaller sizes");
      return false;
    }
  }
  return true;
}

bool is_positive(int64_t value, std::string_view name, ArgumentReader& arguments) {
  if (value > 0) {
    return true;
  }
  arguments.complain(fmt::format("{} is {}", name, value), fmt::format("write {} above 0", name));
  return false;
}

}  // namespace lockstep
