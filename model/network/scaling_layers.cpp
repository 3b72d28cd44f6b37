// Layers that multiply: LayerScale by a parameter, StochasticDepth by chance.
#include <fmt/format.h>

#include <memory>

#include "model/network/layer_kind.hpp"

namespace lockstep {

namespace {

void fill_layer_scale(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const LayerScaleArguments scale{arguments.shape("shape")};
  const double initial = arguments.number("init_values", 1e-5);
  layer.kind = LayerKind::layer_scale;
  layer.arguments = scale;
  fill_pointwise(context, layer);
  bool fits = scale.shape.size() == context.input.size();
  for (size_t i = 0; fits && i < scale.shape.size(); ++i) {
    fits = scale.shape[i] == 1 || scale.shape[i] == context.input[i];
  }
  if (arguments.ok() && !fits) {
    arguments.complain(fmt::format("a scale of shape {} does not fit the input {}",
                                   text_of(scale.shape), text_of(context.input)),
                       "write as many sizes as the input has, each the input's or 1");
    return;
  }
  layer.parameters.push_back({.name = "weight", .shape = scale.shape});
  layer.parameters.back().initial = std::make_shared<const std::vector<double>>(1, initial);
  // The product of input and gradient is written, and then summed.
  layer.work[static_cast<size_t>(Pass::weight_gradient)].runs = true;
  layer.work[static_cast<size_t>(Pass::weight_gradient)].elements = 4 * elements_of(context.input);
  layer.saves.input = true;
}

// The draws of a batch are one number for each sample.
void fill_stochastic_depth(const LayerContext& context, ArgumentReader& arguments, Layer& layer) {
  const std::string mode = arguments.text("mode", "row");
  const StochasticDepthArguments depth{arguments.number("p", 0), mode == "batch"};
  if (mode != "row" && mode != "batch") {
    arguments.complain(fmt::format("StochasticDepth has no mode `{}`", mode), "write row or batch");
  }
  if (!(depth.p >= 0 && depth.p <= 1)) {
    arguments.complain(fmt::format("a probability of {}", depth.p), "write p between 0 and 1");
  }
  layer.kind = LayerKind::stochastic_depth;
  layer.arguments = depth;
  if (depth.p == 0) {
    be_view(context, layer);
  } else {
    fill_pointwise(context, layer);
    layer.saves.elements = 1;
  }
}

}  // namespace

std::vector<LayerKindEntry> scaling_layer_kinds() {
  return {
      {"LayerScale", {"shape", "init_values"}, fill_layer_scale},
      {"StochasticDepth", {"p", "mode"}, fill_stochastic_depth},
  };
}

}  // namespace lockstep
