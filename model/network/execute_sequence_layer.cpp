// Layers of transformers: LayerNorm, GELU, positional embedding, dropout, attention.
#include "model/network/arithmetic/activation.hpp"
#include "model/network/arithmetic/attention.hpp"
#include "model/network/arithmetic/embedding.hpp"
#include "model/network/arithmetic/layer_norm.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

LayerNormShape norm_shape(const LayerNormArguments& arguments, int64_t elements) {
  const int64_t width = elements_of(arguments.normalized_shape);
  return {elements / width, width, arguments.eps};
}

bool has_bias(const LayerNormArguments& arguments) {
  return arguments.elementwise_affine && arguments.bias;
}

GeluForm gelu_form(const Layer& layer) {
  return std::get<GeluArguments>(layer.arguments).tanh ? GeluForm::tanh : GeluForm::exact;
}

AttentionShape attention_shape(const Layer& layer, int64_t samples) {
  const auto& arguments = std::get<AttentionArguments>(layer.arguments);
  return {samples, layer.input[0], arguments.num_heads, arguments.embed_dim / arguments.num_heads,
          layer.kind == LayerKind::causal_self_attention || arguments.causal};
}

/// In the order of their definition; `first`: the index of the first of the reads.
AttentionWeights attention_weights(const Layer& layer, const LayerCall& call, size_t first) {
  const bool bias = std::get<AttentionArguments>(layer.arguments).bias;
  const size_t out = first + (bias ? 2 : 1);
  return {&call.read(first), call.read_if(first + 1, bias), &call.read(out),
          call.read_if(out + 1, bias)};
}

void attention_layer_backward(const Layer& layer, LayerCall& call) {
  const bool bias = std::get<AttentionArguments>(layer.arguments).bias;
  const size_t out = bias ? 3 : 2;
  const AttentionGradients gradients{call.write_if(1), bias ? call.write_if(2) : nullptr,
                                     call.write_if(out), bias ? call.write_if(out + 1) : nullptr};
  self_attention_backward(call.read(1), attention_weights(layer, call, 2), call.read(0),
                          attention_shape(layer, call.samples()), call.write_if(0), gradients);
}

void layer_norm_backward(const Layer& layer, LayerCall& call) {
  const auto& arguments = std::get<LayerNormArguments>(layer.arguments);
  const LayerNormShape shape = norm_shape(arguments, call.read(1).size());
  if (call.wants(0)) {
    layer_norm_input_gradient(call.read(1), call.read(0),
                              call.read_if(2, arguments.elementwise_affine), shape, call.write(0));
  }
  if (call.wants(1)) {
    layer_norm_weight_gradients(call.read(1), call.read(0), shape, call.write(1), call.write_if(2));
  }
}

}  // namespace

bool forward_of_sequence_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::layer_norm: {
      const auto& arguments = std::get<LayerNormArguments>(layer.arguments);
      layer_norm_forward(call.read(0), call.read_if(1, arguments.elementwise_affine),
                         call.read_if(2, has_bias(arguments)),
                         norm_shape(arguments, call.read(0).size()), call.write(0));
      return true;
    }
    case LayerKind::gelu: gelu_forward(call.read(0), gelu_form(layer), call.write(0)); return true;
    case LayerKind::positional_embedding:
      positional_embedding_forward(call.read(0), call.read(1), call.samples(), call.write(0));
      return true;
    case LayerKind::dropout: call.write(0) = call.read(0); return true;
    case LayerKind::attention_core:
      attention_forward(call.read(0), attention_shape(layer, call.samples()), call.write(0));
      return true;
    case LayerKind::multihead_attention:
    case LayerKind::causal_self_attention:
      self_attention_forward(call.read(0), attention_weights(layer, call, 1),
                             attention_shape(layer, call.samples()), call.write(0));
      return true;
    default: return false;
  }
}

bool backward_of_sequence_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::layer_norm: layer_norm_backward(layer, call); return true;
    case LayerKind::gelu:
      if (call.wants(0)) {
        gelu_backward(call.read(1), call.read(0), gelu_form(layer), call.write(0));
      }
      return true;
    case LayerKind::positional_embedding:
      if (call.wants(0)) {
        call.write_cast(0, call.read(0));
      }
      if (call.wants(1)) {
        positional_embedding_weight_gradient(call.read(0), call.samples(), call.write(1));
      }
      return true;
    case LayerKind::dropout:
      if (call.wants(0)) {
        call.write(0) = call.read(0);
      }
      return true;
    case LayerKind::attention_core:
      if (call.wants(0)) {
        attention_backward(call.read(1), call.read(0), attention_shape(layer, call.samples()),
                           call.write(0));
      }
      return true;
    case LayerKind::multihead_attention:
    case LayerKind::causal_self_attention: attention_layer_backward(layer, call); return true;
    default: return false;
  }
}

}  // namespace lockstep
