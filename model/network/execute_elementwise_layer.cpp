// Activations beside ReLU and GELU, softmax, and the norms over groups and rows.
#include <limits>

#include "model/network/arithmetic/group_norm.hpp"
#include "model/network/arithmetic/pointwise.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

Pointwise function_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::leaky_relu: return Pointwise::leaky_relu;
    case LayerKind::relu6: return Pointwise::relu6;
    case LayerKind::silu: return Pointwise::silu;
    case LayerKind::hardswish: return Pointwise::hardswish;
    case LayerKind::sigmoid: return Pointwise::sigmoid;
    case LayerKind::hardsigmoid: return Pointwise::hardsigmoid;
    default: return Pointwise::tanh;
  }
}

double slope_of(const Layer& layer) {
  const auto* arguments = std::get_if<LeakyReluArguments>(&layer.arguments);
  return arguments == nullptr ? 0 : arguments->negative_slope;
}

SoftmaxShape softmax_shape(const Layer& layer) {
  const auto dimension =
      static_cast<ptrdiff_t>(std::get<SoftmaxArguments>(layer.arguments).dimension);
  const auto at = layer.input.begin() + dimension;
  return {*at, elements_of(Shape(at + 1, layer.input.end()))};
}

GroupNormShape group_norm_shape(const Layer& layer, int64_t samples) {
  const auto& arguments = std::get<GroupNormArguments>(layer.arguments);
  return {samples, arguments.num_groups, arguments.num_channels,
          elements_of(layer.input) / arguments.num_channels, arguments.eps};
}

/// torch.finfo(dtype).eps.
double spacing_of(DType dtype) {
  switch (dtype) {
    case DType::fp64: return std::numeric_limits<double>::epsilon();
    case DType::bf16: return 0x1p-7;
    case DType::fp16: return 0x1p-10;
    default: return std::numeric_limits<float>::epsilon();
  }
}

RmsNormShape rms_norm_shape(const Layer& layer, const Values& input) {
  const auto& arguments = std::get<RmsNormArguments>(layer.arguments);
  const int64_t width = elements_of(arguments.normalized_shape);
  return {input.size() / width, width, arguments.eps.value_or(spacing_of(input.dtype()))};
}

void group_norm_backward(const Layer& layer, LayerCall& call) {
  const bool affine = std::get<GroupNormArguments>(layer.arguments).affine;
  const GroupNormShape shape = group_norm_shape(layer, call.samples());
  if (call.wants(0)) {
    group_norm_input_gradient(call.read(1), call.read(0), call.read_if(2, affine), shape,
                              call.write(0));
  }
  if (call.wants(1)) {
    group_norm_weight_gradients(call.read(1), call.read(0), shape, call.write(1), call.write(2));
  }
}

void rms_norm_backward(const Layer& layer, LayerCall& call) {
  const bool affine = std::get<RmsNormArguments>(layer.arguments).elementwise_affine;
  const RmsNormShape shape = rms_norm_shape(layer, call.read(1));
  if (call.wants(0)) {
    rms_norm_input_gradient(call.read(1), call.read(0), call.read_if(2, affine), shape,
                            call.write(0));
  }
  if (call.wants(1)) {
    rms_norm_weight_gradient(call.read(1), call.read(0), shape, call.write(1));
  }
}

}  // namespace

bool forward_of_elementwise_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::leaky_relu:
    case LayerKind::relu6:
    case LayerKind::silu:
    case LayerKind::hardswish:
    case LayerKind::sigmoid:
    case LayerKind::hardsigmoid:
    case LayerKind::tanh:
      pointwise_forward(call.read(0), function_of(layer.kind), slope_of(layer), call.write(0));
      return true;
    case LayerKind::softmax:
      softmax_forward(call.read(0), softmax_shape(layer), call.write(0));
      return true;
    case LayerKind::group_norm: {
      const bool affine = std::get<GroupNormArguments>(layer.arguments).affine;
      group_norm_forward(call.read(0), call.read_if(1, affine), call.read_if(2, affine),
                         group_norm_shape(layer, call.samples()), call.write(0));
      return true;
    }
    case LayerKind::rms_norm: {
      const bool affine = std::get<RmsNormArguments>(layer.arguments).elementwise_affine;
      rms_norm_forward(call.read(0), call.read_if(1, affine), rms_norm_shape(layer, call.read(0)),
                       call.write(0));
      return true;
    }
    default: return false;
  }
}

bool backward_of_elementwise_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::leaky_relu:
    case LayerKind::relu6:
    case LayerKind::silu:
    case LayerKind::hardswish:
    case LayerKind::sigmoid:
    case LayerKind::hardsigmoid:
    case LayerKind::tanh:
      if (call.wants(0)) {
        pointwise_backward(call.read(1), call.read(0), function_of(layer.kind), slope_of(layer),
                           call.write(0));
      }
      return true;
    case LayerKind::softmax:
      if (call.wants(0)) {
        softmax_backward(call.read(1), call.read(0), softmax_shape(layer), call.write(0));
      }
      return true;
    case LayerKind::group_norm: group_norm_backward(layer, call); return true;
    case LayerKind::rms_norm: rms_norm_backward(layer, call); return true;
    default: return false;
  }
}

}  // namespace lockstep
