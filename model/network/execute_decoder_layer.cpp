// Layers of decoders and of images' transformers: grouped attention, SwiGLU, LSTM, and placing.
#include "model/network/arithmetic/grouped_attention.hpp"
#include "model/network/arithmetic/lstm.hpp"
#include "model/network/arithmetic/placing.hpp"
#include "model/network/arithmetic/swiglu.hpp"
#include "model/network/layer_call.hpp"

namespace lockstep {

namespace {

/// Weights, each with its bias behind it if it has one, as the layers define them.
template <class Set, class HasBias, class At>
Set parameter_set(size_t count, HasBias has_bias, At at) {
  Set set;
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    set.weights[i] = at(next++);
    set.biases[i] = has_bias(i) ? at(next++) : nullptr;
  }
  return set;
}

GroupedAttentionShape grouped_shape(const Layer& layer, int64_t samples) {
  const auto& a = std::get<GroupedQueryArguments>(layer.arguments);
  GroupedAttentionShape shape{samples,        layer.input[0], a.embed_dim,  a.num_heads,
                              a.num_kv_heads, a.head_dim,     a.rope_theta, a.sliding_window};
  shape.norm_eps = a.qk_norm_eps;
  return shape;
}

/// The norms of query and key are the last two tensors.
template <class Set, class At>
void add_norms(const Layer& layer, At at, Set& set) {
  if (std::get<GroupedQueryArguments>(layer.arguments).qk_norm_eps) {
    set.norms = {at(layer.parameters.size() - 2), at(layer.parameters.size() - 1)};
  }
}

/// Projections of positions that a rank has, whose index is the scalar `place`.
GroupedAttentionShape shape_of_projections(const Layer& layer, const LayerCall& call,
                                           size_t place) {
  GroupedAttentionShape shape = grouped_shape(layer, call.samples());
  shape.ranks = layer.context->ranks;
  shape.index = static_cast<int32_t>(call.scalar(place));
  return shape;
}

SwigluShape swiglu_shape(const Layer& layer, int64_t elements) {
  const auto& a = std::get<SwigluArguments>(layer.arguments);
  return {elements / a.embed_dim, a.embed_dim, a.hidden_dim, a.gelu};
}

UpsampleShape upsample_shape(const Layer& layer, int64_t samples) {
  const Pair& factor = std::get<UpsampleArguments>(layer.arguments).scale_factor;
  return {samples * layer.input[0], layer.input[1], layer.input[2], factor[0], factor[1]};
}

PatchSequenceShape patch_shape(const Layer& layer, int64_t samples) {
  return {samples, layer.input[0], layer.input[1] * layer.input[2]};
}

bool has_class_token(const Layer& layer) {
  return std::get<PatchSequenceArguments>(layer.arguments).class_token;
}

// LSTM

LstmShape lstm_shape(const Layer& layer, int64_t samples, int64_t level) {
  const auto& a = std::get<LstmArguments>(layer.arguments);
  return {samples, layer.input[0], level == 0 ? a.input_size : a.hidden_size, a.hidden_size};
}

/// `first`: the index of the layer's first parameter among the reads.
LstmWeights lstm_weights(const Layer& layer, const LayerCall& call, size_t first, int64_t level) {
  const bool bias = std::get<LstmArguments>(layer.arguments).bias;
  const size_t at = first + static_cast<size_t>(level) * (bias ? 4 : 2);
  return {&call.read(at), &call.read(at + 1), call.read_if(at + 2, bias),
          call.read_if(at + 3, bias)};
}

LstmGradients lstm_gradients(const Layer& layer, LayerCall& call, int64_t level) {
  const bool bias = std::get<LstmArguments>(layer.arguments).bias;
  const size_t at = 1 + static_cast<size_t>(level) * (bias ? 4 : 2);
  return {call.write_if(at), call.write_if(at + 1), bias ? call.write_if(at + 2) : nullptr,
          bias ? call.write_if(at + 3) : nullptr};
}

/// The input of each level, and behind them the output.
std::vector<Values> lstm_levels(const Layer& layer, const Values& input, const LayerCall& call,
                                size_t first, DType dtype) {
  const auto& a = std::get<LstmArguments>(layer.arguments);
  std::vector<Values> levels{input};
  for (int64_t level = 0; level < a.num_layers; ++level) {
    Values output(dtype, call.samples() * elements_of(layer.output));
    lstm_forward(levels.back(), lstm_weights(layer, call, first, level),
                 lstm_shape(layer, call.samples(), level), output);
    levels.push_back(std::move(output));
  }
  return levels;
}

void lstm_layer_backward(const Layer& layer, LayerCall& call) {
  const auto& a = std::get<LstmArguments>(layer.arguments);
  const DType dtype = call.read(0).dtype();
  const std::vector<Values> levels = lstm_levels(layer, call.read(1), call, 2, dtype);
  Values gradient = call.read(0);
  for (int64_t level = a.num_layers; level-- > 0;) {
    Values below(dtype, levels[static_cast<size_t>(level)].size());
    Values* wanted = level > 0 ? &below : call.write_if(0);
    lstm_backward(levels[static_cast<size_t>(level)], lstm_weights(layer, call, 2, level), gradient,
                  lstm_shape(layer, call.samples(), level), wanted,
                  lstm_gradients(layer, call, level));
    gradient = std::move(below);
  }
}

// Forward and backward of the others

void grouped_layer(const Layer& layer, LayerCall& call, bool is_forward) {
  const auto& attention = std::get<GroupedQueryArguments>(layer.arguments);
  const auto has_bias = [&attention](size_t index) {
    return index + 1 < grouped_projections ? attention.qkv_bias : attention.bias;
  };
  const size_t first = is_forward ? 1 : 2;
  const auto read = [&](size_t index) { return &call.read(first + index); };
  auto weights = parameter_set<GroupedAttentionWeights>(grouped_projections, has_bias, read);
  add_norms(layer, read, weights);
  const GroupedAttentionShape shape = grouped_shape(layer, call.samples());
  if (is_forward) {
    grouped_attention_forward(call.read(0), weights, shape, call.write(0));
    return;
  }
  const auto write = [&](size_t index) { return call.write_if(1 + index); };
  auto gradients = parameter_set<GroupedAttentionGradients>(grouped_projections, has_bias, write);
  add_norms(layer, write, gradients);
  grouped_attention_backward(call.read(1), weights, call.read(0), shape, call.write_if(0),
                             gradients);
}

void turned_projections(const Layer& layer, LayerCall& call, bool is_forward) {
  const auto has_bias = [qkv_bias = std::get<GroupedQueryArguments>(layer.arguments).qkv_bias](
                            size_t) { return qkv_bias; };
  const size_t tensors = layer.parameters.size();
  const size_t first = is_forward ? 1 : 2;
  const auto weights = parameter_set<GroupedAttentionWeights>(
      grouped_projections, has_bias,
      [&](size_t index) { return call.read_if(first + index, index < tensors); });
  if (is_forward) {
    turned_projections_forward(call.read(0), weights, shape_of_projections(layer, call, 3),
                               call.write(0));
    return;
  }
  const auto gradients = parameter_set<GroupedAttentionGradients>(
      grouped_projections, has_bias,
      [&](size_t index) { return index < tensors ? call.write_if(1 + index) : nullptr; });
  turned_projections_backward(call.read(1), weights, call.read(0),
                              shape_of_projections(layer, call, 1), call.write_if(0), gradients);
}

void swiglu_layer(const Layer& layer, LayerCall& call, bool is_forward) {
  const auto has_bias = [bias = std::get<SwigluArguments>(layer.arguments).bias](size_t) {
    return bias;
  };
  const size_t first = is_forward ? 1 : 2;
  const auto weights = parameter_set<SwigluWeights>(
      swiglu_products, has_bias, [&](size_t index) { return &call.read(first + index); });
  const SwigluShape shape = swiglu_shape(layer, call.read(is_forward ? 0 : 1).size());
  if (is_forward) {
    swiglu_forward(call.read(0), weights, shape, call.write(0));
    return;
  }
  const auto gradients = parameter_set<SwigluGradients>(
      swiglu_products, has_bias, [&](size_t index) { return call.write_if(1 + index); });
  swiglu_backward(call.read(1), weights, call.read(0), shape, call.write_if(0), gradients);
}

void first_position_backward(LayerCall& call) {
  if (call.wants(0)) {
    call.write(0) = Values(call.write(0).dtype(), call.write(0).size());
    put_columns(call.read(0), call.samples(), 0, call.write(0));
  }
}

}  // namespace

bool forward_of_decoder_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::grouped_query_attention: grouped_layer(layer, call, true); return true;
    case LayerKind::attention_projections: turned_projections(layer, call, true); return true;
    case LayerKind::swiglu: swiglu_layer(layer, call, true); return true;
    case LayerKind::lstm:
      call.write(0) = lstm_levels(layer, call.read(0), call, 1, call.write(0).dtype()).back();
      return true;
    case LayerKind::upsample:
      upsample_forward(call.read(0), upsample_shape(layer, call.samples()), call.write(0));
      return true;
    case LayerKind::patch_sequence:
      patch_sequence_forward(call.read(0), call.read_if(1, has_class_token(layer)),
                             patch_shape(layer, call.samples()), call.write(0));
      return true;
    case LayerKind::first_position:
      take_columns(call.read(0), call.samples(), 0, elements_of(layer.output), call.write(0));
      return true;
    case LayerKind::residual_concatenate: {
      const Values& remembered = call.read(call.reads() - 1);
      put_columns(remembered, call.samples(), 0, call.write(0));
      put_columns(call.read(0), call.samples(), remembered.size() / call.samples(), call.write(0));
      return true;
    }
    default: return false;
  }
}

bool backward_of_decoder_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::grouped_query_attention: grouped_layer(layer, call, false); return true;
    case LayerKind::attention_projections: turned_projections(layer, call, false); return true;
    case LayerKind::swiglu: swiglu_layer(layer, call, false); return true;
    case LayerKind::lstm: lstm_layer_backward(layer, call); return true;
    case LayerKind::upsample:
      if (call.wants(0)) {
        upsample_backward(call.read(0), upsample_shape(layer, call.samples()), call.write(0));
      }
      return true;
    case LayerKind::patch_sequence:
      patch_sequence_backward(call.read(0), has_class_token(layer),
                              patch_shape(layer, call.samples()), call.write_if(0),
                              call.write_if(1));
      return true;
    case LayerKind::first_position: first_position_backward(call); return true;
    case LayerKind::residual_concatenate:
      if (call.wants(0)) {
        const int64_t own = elements_of(layer.input);
        take_columns(call.read(0), call.samples(), elements_of(layer.output) - own, own,
                     call.write(0));
      }
      return true;
    default: return false;
  }
}

}  // namespace lockstep
