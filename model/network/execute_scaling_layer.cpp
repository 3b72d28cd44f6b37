// Layers that multiply, layers that put dimensions in a different order, and attention in windows.
#include "model/network/arithmetic/broadcast.hpp"
#include "model/network/arithmetic/placing.hpp"
#include "model/network/arithmetic/tensor.hpp"
#include "model/network/arithmetic/window_attention.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

BroadcastShape scale_shape(const Layer& layer, int64_t samples) {
  return {samples, layer.input, std::get<LayerScaleArguments>(layer.arguments).shape, false};
}

/// Of a Multiply: `input` is its factor, and its output as what was remembered.
BroadcastShape product_shape(const Layer& layer, int64_t samples) {
  return {samples, layer.output, layer.input, true};
}

void layer_scale_backward(const Layer& layer, LayerCall& call) {
  const BroadcastShape shape = scale_shape(layer, call.samples());
  if (call.wants(0)) {
    multiply_forward(call.read(0), call.read(2), shape, call.write(0));
  }
  if (call.wants(1)) {
    accumulate(Reduction::sum, call.write(1),
               factor_gradient(call.read(1), call.read(0), shape, call.write(1).dtype()));
  }
}

/// Reads the product's gradient and both factors, and writes the gradients of both.
void multiply_backward(const Layer& layer, LayerCall& call) {
  const BroadcastShape shape = product_shape(layer, call.samples());
  if (call.wants(0)) {
    call.write(0) = factor_gradient(call.read(2), call.read(0), shape, call.write(0).dtype());
  }
  if (call.wants(1)) {
    multiply_forward(call.read(0), call.read(1), shape, call.write(1));
  }
}

/// Parameters and their gradients are in the order of their definition.
template <class Set, class Find>
Set window_tensors(const Layer& layer, size_t first, Find find) {
  const auto& arguments = std::get<WindowAttentionArguments>(layer.arguments);
  const auto next = [&](bool has) { return has ? find(first++) : nullptr; };
  Set set;
  set.qkv = next(true);
  set.qkv_bias = next(arguments.qkv_bias);
  set.projection = next(true);
  set.projection_bias = next(arguments.proj_bias);
  set.table = next(true);
  return set;
}

void window_layer(const Layer& layer, LayerCall& call, bool is_forward) {
  const WindowShape shape =
      window_shape(std::get<WindowAttentionArguments>(layer.arguments), layer.input);
  const auto weights = window_tensors<WindowAttentionWeights>(
      layer, is_forward ? 1 : 2, [&](size_t index) { return &call.read(index); });
  if (is_forward) {
    window_attention_forward(call.read(0), weights, call.samples(), shape, call.write(0));
    return;
  }
  const auto gradients = window_tensors<WindowAttentionGradients>(
      layer, 1, [&](size_t index) { return call.write_if(index); });
  window_attention_backward(call.read(1), weights, call.read(0), call.samples(), shape,
                            call.write_if(0), gradients);
}

const std::vector<size_t>& order_of(const Layer& layer) {
  return std::get<PermuteArguments>(layer.arguments).order;
}

}  // namespace

bool forward_of_scaling_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::layer_scale:
      multiply_forward(call.read(0), call.read(1), scale_shape(layer, call.samples()),
                       call.write(0));
      return true;
    case LayerKind::stochastic_depth: call.write(0) = call.read(0); return true;
    case LayerKind::permute:
      permute_forward(call.read(0), layer.input, order_of(layer), call.write(0));
      return true;
    case LayerKind::patch_merging:
      merge_patches(call.read(0), layer.input, call.write(0));
      return true;
    case LayerKind::window_attention: window_layer(layer, call, true); return true;
    case LayerKind::residual_multiply:
      multiply_forward(call.read(call.reads() - 1), call.read(0),
                       product_shape(layer, call.samples()), call.write(0));
      return true;
    default: return false;
  }
}

bool backward_of_scaling_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::layer_scale: layer_scale_backward(layer, call); return true;
    case LayerKind::stochastic_depth:
      if (call.wants(0)) {
        call.write(0) = call.read(0);
      }
      return true;
    case LayerKind::permute:
      if (call.wants(0)) {
        permute_backward(call.read(0), layer.input, order_of(layer), call.write(0));
      }
      return true;
    case LayerKind::patch_merging:
      if (call.wants(0)) {
        part_patches(call.read(0), layer.input, call.write(0));
      }
      return true;
    case LayerKind::window_attention: window_layer(layer, call, false); return true;
    case LayerKind::residual_multiply: multiply_backward(layer, call); return true;
    default: return false;
  }
}

}  // namespace lockstep
