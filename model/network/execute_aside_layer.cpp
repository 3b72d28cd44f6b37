// Layers of encoders and decoders: attention that reads what was put aside, and what it needs.
#include "model/network/arithmetic/aside_attention.hpp"
#include "model/network/arithmetic/placing.hpp"
#include "model/network/arithmetic/tensor.hpp"
#include "model/network/layer_call.hpp"
#include "model/network/relative_buckets.hpp"

namespace lockstep {

namespace {

void scaled(const Values& input, double factor, Values& output) {
  for (int64_t i = 0; i < input.size(); ++i) {
    output.set(i, input.number(i) * factor);
  }
}

/// Calls visit(place in the bias of a sample, place in the table).
template <class Visit>
void for_each_distance(const Layer& layer, Visit visit) {
  const auto& arguments = std::get<RelativePositionBiasArguments>(layer.arguments);
  const int64_t positions = layer.input[0];
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t other = 0; other < positions; ++other) {
      const int64_t row = relative_bucket(arguments, position, other);
      for (int64_t head = 0; head < arguments.num_heads; ++head) {
        visit((head * positions + position) * positions + other, row * arguments.num_heads + head);
      }
    }
  }
}

void relative_bias_forward(const Layer& layer, LayerCall& call) {
  const int64_t apart = elements_of(layer.output);
  for (int64_t sample = 0; sample < call.samples(); ++sample) {
    for_each_distance(layer, [&](int64_t place, int64_t row) {
      call.write(0).set(sample * apart + place, call.read(1).number(row));
    });
  }
}

void relative_bias_backward(const Layer& layer, LayerCall& call) {
  if (call.wants(0)) {  // the number of positions is all that it reads
    call.write(0) = Values(call.write(0).dtype(), call.write(0).size());
  }
  if (!call.wants(1)) {
    return;
  }
  const int64_t apart = elements_of(layer.output);
  Values sums(call.write(1).dtype() == DType::fp64 ? DType::fp64 : DType::fp32,
              call.write(1).size());
  for (int64_t sample = 0; sample < call.samples(); ++sample) {
    for_each_distance(layer, [&](int64_t place, int64_t row) {
      sums.set(row, sums.number(row) + call.read(0).number(sample * apart + place));
    });
  }
  Values rounded(call.write(1).dtype(), sums.size());
  cast(sums, rounded);
  accumulate(Reduction::sum, call.write(1), rounded);
}

/// Weights and biases take turns, in the order of the products.
template <class Set, class Find>
Set products_of(const Layer& layer, size_t first, Find find) {
  const bool has_bias = std::get<AsideAttentionArguments>(layer.arguments).bias;
  Set set;
  for (size_t product = 0; product < aside_products; ++product) {
    set.weight[product] = find(first++);
    if (has_bias) {
      set.bias[product] = find(first++);
    }
  }
  return set;
}

void attention_beside(const Layer& layer, LayerCall& call, bool is_forward) {
  const auto& arguments = std::get<AsideAttentionArguments>(layer.arguments);
  const bool is_cross = layer.kind == LayerKind::cross_attention;
  const Values& input = call.read(is_forward ? 0 : 1);
  const Values& beside = call.read(call.reads() - 1);
  const AsideAttentionShape shape{arguments, call.samples(), layer.input[0],
                                  is_cross ? layer.aside->shape[0] : layer.input[0]};
  const AsideOperands aside{is_cross ? beside : input, is_cross ? nullptr : &beside};
  const auto weights = products_of<AsideWeights>(layer, is_forward ? 1 : 2,
                                                 [&](size_t index) { return &call.read(index); });
  if (is_forward) {
    aside_attention_forward(input, aside, weights, shape, call.write(0));
    return;
  }
  const size_t last = 1 + layer.parameters.size();
  AsideGradients gradients{.input = call.write_if(0)};
  gradients.weights = products_of<AsideWeightGradients>(
      layer, 1, [&](size_t index) { return call.write_if(index); });
  (is_cross ? gradients.source : gradients.bias) = call.write_if(last);
  aside_attention_backward(input, aside, weights, call.read(0), shape, gradients);
}

const PositionsArguments& positions_of_layer(const Layer& layer) {
  return std::get<PositionsArguments>(layer.arguments);
}

/// Numbers of one position.
int64_t width_of_position(const Layer& layer) {
  return elements_of(layer.output) / positions_of_layer(layer).count;
}

}  // namespace

bool forward_of_aside_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::scale:
      scaled(call.read(0), std::get<ScaleArguments>(layer.arguments).factor, call.write(0));
      return true;
    case LayerKind::positions:
      take_columns(call.read(0), call.samples(),
                   positions_of_layer(layer).first * width_of_position(layer),
                   elements_of(layer.output), call.write(0));
      return true;
    case LayerKind::relative_position_bias: relative_bias_forward(layer, call); return true;
    case LayerKind::biased_attention:
    case LayerKind::cross_attention: attention_beside(layer, call, true); return true;
    case LayerKind::aside_end: call.write(0) = call.read(0); return true;
    default: return false;
  }
}

bool backward_of_aside_layer(const Layer& layer, LayerCall& call) {
  switch (layer.kind) {
    case LayerKind::scale:
      if (call.wants(0)) {
        scaled(call.read(0), std::get<ScaleArguments>(layer.arguments).factor, call.write(0));
      }
      return true;
    case LayerKind::positions:
      if (call.wants(0)) {
        call.write(0) = Values(call.write(0).dtype(), call.write(0).size());
        put_columns(call.read(0), call.samples(),
                    positions_of_layer(layer).first * width_of_position(layer), call.write(0));
      }
      return true;
    case LayerKind::relative_position_bias: relative_bias_backward(layer, call); return true;
    case LayerKind::biased_attention:
    case LayerKind::cross_attention: attention_beside(layer, call, false); return true;
    case LayerKind::aside_end:
      if (call.wants(0)) {
        call.write_cast(0, call.read(0));
      }
      return true;
    default: return false;
  }
}

}  // namespace lockstep
