// Activations beside ReLU and GELU, Softmax and Identity.
#include <fmt/format.h>

#include <iterator>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

// Backward reads what was kept and the output's gradient, and writes the input's.
void fill_activation(const LayerContext& context, LayerKind kind, Layer& layer) {
  layer.kind = kind;
  fill_pointwise(context, layer);
  layer.work[static_cast<size_t>(Pass::input_gradient)].elements = 3 * elements_of(context.input);
}

void fill_leaky_relu(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.arguments = LeakyReluArguments{arguments.number("negative_slope", 0.01)};
  const bool inplace = arguments.boolean("inplace", false);
  fill_activation(context, LayerKind::leaky_relu, layer);
  layer.saves.input = !inplace;
  layer.saves.output = inplace;  // it lies where the input was
}

void fill_relu6(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const bool inplace = arguments.boolean("inplace", false);
  fill_activation(context, LayerKind::relu6, layer);
  layer.saves.input = !inplace;
  layer.saves.output = inplace;  // it lies where the input was
}

// In place, torch keeps a copy of the input: as many bytes as the input beside the output.
void fill_hardswish(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  arguments.boolean("inplace", false);
  fill_activation(context, LayerKind::hardswish, layer);
  layer.saves.input = true;
}

void fill_hardsigmoid(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  arguments.boolean("inplace", false);
  fill_activation(context, LayerKind::hardsigmoid, layer);
  layer.saves.input = true;
}

void fill_silu(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  arguments.only("inplace", false);  // torch keeps a copy of the input then
  fill_activation(context, LayerKind::silu, layer);
  layer.saves.input = true;
}

void fill_sigmoid(const LayerContext& context, ArgumentReader&, Layer& layer) {
  fill_activation(context, LayerKind::sigmoid, layer);
  layer.saves.output = true;
}

void fill_tanh(const LayerContext& context, ArgumentReader&, Layer& layer) {
  fill_activation(context, LayerKind::tanh, layer);
  layer.saves.output = true;
}

// torch counts the batch as dimension 0; a sample's first dimension is therefore 1.
void fill_softmax(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const auto dimensions = static_cast<int64_t>(context.input.size());
  const int64_t given = arguments.integer("dim", -1);
  const int64_t dimension = given < 0 ? given + dimensions + 1 : given;
  layer.arguments = SoftmaxArguments{dimension - 1};
  if (dimension < 1 || dimension > dimensions) {
    arguments.complain(fmt::format("dim {} is no dimension of a sample: the input has shape {} "
                                   "behind the batch",
                                   given, text_of(context.input)),
                       "write -1 for the last dimension, or 1 for the first behind the batch");
    return;
  }
  fill_activation(context, LayerKind::softmax, layer);
  layer.saves.output = true;
}

void fill_identity(const LayerContext& context, ArgumentReader&, Layer& layer) {
  layer.kind = LayerKind::identity;
  be_view(context, layer);
}

}  // namespace

std::vector<LayerKindEntry> activation_layer_kinds() {
  return {
      {"LeakyReLU", {"negative_slope", "inplace"}, fill_leaky_relu},
      {"ReLU6", {"inplace"}, fill_relu6},
      {"SiLU", {"inplace"}, fill_silu},
      {"Hardswish", {"inplace"}, fill_hardswish},
      {"Hardsigmoid", {"inplace"}, fill_hardsigmoid},
      {"Sigmoid", {}, fill_sigmoid},
      {"Tanh", {}, fill_tanh},
      {"Softmax", {"dim"}, fill_softmax},
      {"Identity", {}, fill_identity},
  };
}

}  // namespace lockstep
