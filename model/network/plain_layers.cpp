// Layers without weights, and layers that only stand for something.
#include <fmt/format.h>

#include <algorithm>

#include "model/network/layer_kind.hpp"

namespace lockstep {

void be_view(const LayerContext& context, Layer& layer) {
  layer.output = context.input;
  layer.work = {Work{.runs = false}, Work{.runs = false}, Work{.runs = false}};
  layer.saves.is_view = true;
}

namespace {

void fill_relu(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  arguments.boolean("inplace", false);  // changes neither values nor what is kept
  layer.kind = LayerKind::relu;
  fill_pointwise(context, layer);
  layer.work[static_cast<size_t>(Pass::input_gradient)].elements = 3 * elements_of(context.input);
  layer.saves.output = true;
}

void fill_gelu(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const std::string approximate = arguments.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    arguments.complain(fmt::format("GELU has no approximation `{}`", approximate),
                       "write none or tanh");
  }
  layer.kind = LayerKind::gelu;
  layer.arguments = GeluArguments{approximate == "tanh"};
  fill_pointwise(context, layer);
  layer.work[static_cast<size_t>(Pass::input_gradient)].elements = 3 * elements_of(context.input);
  layer.saves.input = true;
}

void fill_dropout(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const DropoutArguments dropout{arguments.number("p", 0.5)};
  arguments.boolean("inplace", false);
  if (!(dropout.p >= 0 && dropout.p <= 1)) {
    arguments.complain(fmt::format("a probability of {}", dropout.p), "write p between 0 and 1");
  }
  layer.kind = LayerKind::dropout;
  layer.arguments = dropout;
  fill_pointwise(context, layer);
  if (dropout.p == 0) {
    layer.work = {Work{.runs = false}, Work{.runs = false}, Work{.runs = false}};
    layer.saves.is_view = true;
  } else {
    layer.saves.fixed = 1_B * elements_of(context.input);  // the mask
  }
}

void fill_flatten(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::flatten;
  be_view(context, layer);
  // torch counts the batch as dimension 0; a sample's first dimension is therefore 1.
  const auto dimensions = static_cast<int64_t>(context.input.size());
  const int64_t start = arguments.integer("start_dim", 1);
  const int64_t given_end = arguments.integer("end_dim", -1);
  const int64_t end = given_end < 0 ? given_end + dimensions + 1 : given_end;
  if (dimensions == 0) {
    layer.output = {1};
    return;
  }
  if (start < 1 || end > dimensions || start > end) {
    arguments.complain(fmt::format("cannot flatten dimensions {} to {} of a batch of {}", start,
                                   given_end, text_of(context.input)),
                       "start at 1 or later: dimension 0 is the batch");
    return;
  }
  const auto first = context.input.begin() + start - 1;
  const auto last = context.input.begin() + end;
  layer.output.assign(context.input.begin(), first);
  layer.output.push_back(elements_of(Shape(first, last)));
  layer.output.insert(layer.output.end(), last, context.input.end());
}

void fill_buffer(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::buffer;
  be_view(context, layer);
  const Shape shape = arguments.shape("shape");
  const std::string dtype = arguments.text("dtype", "fp32");
  const auto known = dtype_named(dtype);
  if (!known) {
    arguments.complain(fmt::format("no dtype `{}`", dtype),
                       "write fp32, fp64, bf16, fp16, int64, uint8 or bool");
  }
  layer.buffers.push_back({"buffer", shape, known.value_or(DType::fp32)});
}

void fill_cost(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  layer.kind = LayerKind::cost;
  be_view(context, layer);
  layer.saves.is_view = false;
  layer.work = {Work{}, Work{}, Work{.runs = false}};  // the price of backward is for all of it
  const int64_t parameters = arguments.integer("parameters", 0);
  const CostArguments cost{arguments.time("forward"), arguments.time("backward"),
                           arguments.bytes("activation")};
  layer.arguments = cost;
  layer.saves.fixed = cost.activation;
  if (parameters < 0) {
    arguments.complain("a negative number of parameters", "write 0 or more");
  } else if (parameters > 0) {
    layer.parameters.push_back({"weight", {parameters}});
  }
}

}  // namespace

std::vector<LayerKindEntry> plain_layer_kinds() {
  return {
      {"ReLU", {"inplace"}, fill_relu},
      {"GELU", {"approximate"}, fill_gelu},
      {"Dropout", {"p", "inplace"}, fill_dropout},
      {"Flatten", {"start_dim", "end_dim"}, fill_flatten},
      {"Buffer", {"shape", "dtype"}, fill_buffer},
      {"Cost", {"parameters", "forward", "backward", "activation"}, fill_cost},
  };
}

}  // namespace lockstep
