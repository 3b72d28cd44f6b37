// Layers of images: Conv2d and pooling.
#include "model/network/arithmetic/convolution.hpp"
#include "model/network/arithmetic/pooling.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

ConvolutionShape convolution_shape(const Layer& layer, int64_t samples) {
  return {std::get<Conv2dArguments>(layer.arguments),
          samples,
          {layer.input[1], layer.input[2]},
          {layer.output[1], layer.output[2]}};
}

PoolingShape pooling_shape(const Layer& layer, int64_t samples) {
  PoolingShape shape;
  shape.pooling = layer.kind == LayerKind::max_pool2d   ? Pooling::greatest
                  : layer.kind == LayerKind::avg_pool2d ? Pooling::average
                                                        : Pooling::adaptive_average;
  if (const auto* window = std::get_if<Pool2dArguments>(&layer.arguments)) {
    shape.window = *window;
  }
  shape.planes = samples * layer.input[0];
  shape.input = {layer.input[1], layer.input[2]};
  shape.output = {layer.output[1], layer.output[2]};
  return shape;
}

void conv2d_backward(const Layer& layer, LayerCall& call) {
  const ConvolutionShape shape = convolution_shape(layer, call.samples());
  if (call.wants(0)) {
    conv2d_input_gradient(call.read(0), call.read(2), shape, call.write(0));
  }
  if (call.wants(1)) {
    conv2d_weight_gradient(call.read(1), call.read(0), shape, call.write(1));
  }
  if (shape.arguments.bias && call.wants(2)) {
    conv2d_bias_gradient(call.read(0), shape, call.write(2));
  }
}

}  // namespace

bool forward_of_image_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::conv2d: {
      const ConvolutionShape shape = convolution_shape(layer, call.samples());
      conv2d_forward(call.read(0), call.read(1), call.read_if(2, shape.arguments.bias), shape,
                     call.write(0));
      return true;
    }
    case LayerKind::max_pool2d:
    case LayerKind::avg_pool2d:
    case LayerKind::adaptive_avg_pool2d:
      pool2d_forward(call.read(0), pooling_shape(layer, call.samples()), call.write(0));
      return true;
    default: return false;
  }
}

bool backward_of_image_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::conv2d: conv2d_backward(layer, call); return true;
    case LayerKind::max_pool2d:
    case LayerKind::avg_pool2d:
    case LayerKind::adaptive_avg_pool2d:
      if (call.wants(0)) {
        pool2d_input_gradient(call.read(1), call.read(0), pooling_shape(layer, call.samples()),
                              call.write(0));
      }
      return true;
    default: return false;
  }
}

}  // namespace lockstep
