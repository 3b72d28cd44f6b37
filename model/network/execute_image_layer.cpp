// Layers of images: Conv2d and pooling.
#include "model/network/arithmetic/convolution.hpp"
#include "model/network/arithmetic/pooling.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

Pair sides_of(const Shape& image) {
  return image.size() == 2 ? Pair{1, image[1]} : Pair{image[1], image[2]};
}

/// Of a transposed convolution the one that it mirrors, from its output to its input.
ConvolutionShape convolution_shape(const Layer& layer, int64_t samples) {
  if (const auto* transposed = std::get_if<ConvTranspose2dArguments>(&layer.arguments)) {
    return {transposed->mirrored, samples, sides_of(layer.output), sides_of(layer.input)};
  }
  return {std::get<Conv2dArguments>(layer.arguments), samples, sides_of(layer.input),
          sides_of(layer.output)};
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

void conv_transpose2d_backward(const Layer& layer, LayerCall& call) {
  const ConvolutionShape mirrored = convolution_shape(layer, call.samples());
  if (call.wants(0)) {
    conv2d_forward(call.read(0), call.read(2), nullptr, mirrored, call.write(0));
  }
  if (call.wants(1)) {
    conv2d_weight_gradient(call.read(0), call.read(1), mirrored, call.write(1));
  }
  if (mirrored.arguments.bias && call.wants(2)) {
    ConvolutionShape output = mirrored;
    output.arguments.out_channels = mirrored.arguments.in_channels;
    output.output = mirrored.input;
    conv2d_bias_gradient(call.read(0), output, call.write(2));
  }
}

}  // namespace

bool forward_of_image_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::conv_transpose2d: {
      const ConvolutionShape mirrored = convolution_shape(layer, call.samples());
      conv_transpose2d_forward(call.read(0), call.read(1), call.read_if(2, mirrored.arguments.bias),
                               mirrored, call.write(0));
      return true;
    }
    case LayerKind::conv1d:
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
    case LayerKind::conv_transpose2d: conv_transpose2d_backward(layer, call); return true;
    case LayerKind::conv1d:
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
