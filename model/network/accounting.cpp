#include "model/network/accounting.hpp"

#include <optional>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

/// A tensor on its way: who made it (nobody: the batch), and whether a gradient flows back to it.
struct Flow {
  std::optional<size_t> maker;
  bool has_gradient = false;
};

struct Branches {
  size_t begin = 0;  ///< the layer that remembers
  Flow remembered;
  std::optional<Flow> put_aside;
  const Flow& other() const { return put_aside ? *put_aside : remembered; }
};

Work& work(Layer& layer, Pass pass) { return layer.work[static_cast<size_t>(pass)]; }

/// Several kernels, of which the earlier ones get their gradients through the later ones.
bool is_composite(LayerKind kind) {
  return kind == LayerKind::multihead_attention || kind == LayerKind::causal_self_attention ||
         kind == LayerKind::grouped_query_attention || kind == LayerKind::window_attention ||
         kind == LayerKind::biased_attention || kind == LayerKind::cross_attention ||
         kind == LayerKind::swiglu || kind == LayerKind::mixture_of_experts ||
         kind == LayerKind::lstm;
}

/// Only the weight's gradient needs the input of these, not the input's.
bool keeps_input_for_weight_alone(LayerKind kind) {
  return kind == LayerKind::linear || kind == LayerKind::conv1d || kind == LayerKind::conv2d ||
         kind == LayerKind::conv_transpose2d || kind == LayerKind::attention_projections ||
         kind == LayerKind::layer_scale;
}

void prune_gradients(Layer& layer, bool input_needs, bool trainable) {
  Work& input_gradient = work(layer, Pass::input_gradient);
  Work& weight_gradient = work(layer, Pass::weight_gradient);
  weight_gradient.runs = weight_gradient.runs && trainable;
  // Their weights need most of the input's path, and a Cost has one price for all.
  const bool needs_all = layer.kind == LayerKind::cost || (is_composite(layer.kind) && trainable);
  input_gradient.runs = input_gradient.runs && (input_needs || needs_all);
  if (layer.kind == LayerKind::batch_norm && trainable && !input_needs) {
    weight_gradient = {.elements = 2 * elements_of(layer.input)};
  }
  if (!input_needs && !trainable && layer.kind != LayerKind::cost) {
    layer.saves = {.is_view = layer.saves.is_view};
  }
  if (keeps_input_for_weight_alone(layer.kind) && !trainable) {
    layer.saves.input = false;
  }
  if (layer.kind == LayerKind::embedding && !trainable) {
    layer.saves.fixed = 0_B;
  }
}

int64_t weights_read(const Network& network, const Layer& layer) {
  if (layer.kind == LayerKind::embedding) {
    return 0;  // only rows that occur; they are among the elements
  }
  if (layer.kind == LayerKind::positional_embedding) {
    return elements_of(layer.input);
  }
  const int64_t tied =
      layer.tied_layer ? network.layers[*layer.tied_layer].parameters[0].elements() : 0;
  return layer.parameter_elements() + tied;
}

Flow after_layer(const Layer& layer, size_t index, const Flow& input, bool trainable,
                 std::vector<Branches>& branches) {
  switch (layer.kind) {
    case LayerKind::residual_begin: branches.push_back({index, input, std::nullopt}); return input;
    case LayerKind::aside_end: branches.pop_back(); return input;
    case LayerKind::residual_shortcut:
      branches.back().put_aside = input;
      return branches.back().remembered;
    case LayerKind::residual_add:
    case LayerKind::residual_concatenate:
    case LayerKind::residual_multiply: {
      const Branches closed = branches.back();
      branches.pop_back();
      return {index, input.has_gradient || closed.other().has_gradient};
    }
    default:
      return {layer.saves.is_view ? input.maker : std::optional(index),
              input.has_gradient || trainable};
  }
}

/// What a layer reads beside its input; nobody's where it reads nothing.
Flow beside(const Layer& layer, const std::vector<Branches>& branches) {
  if (joins_branches(layer.kind)) {
    return branches.back().other();
  }
  for (const Branches& open : branches) {
    if (layer.aside && layer.aside->begin == open.begin) {
      return open.other();
    }
  }
  return {};
}

/// Which tensors are kept, by the layer that made them.
struct KeptTensors {
  std::vector<bool> forward;     ///< of the forward
  std::vector<bool> recomputed;  ///< of the forward that a segment runs again

  /// The output of `maker` is needed in `segment`, or outside of all.
  void keep(size_t maker, const CheckpointedSegment* segment) {
    const bool made_inside = segment != nullptr && segment->contains(maker) &&
                             segment->recomputation != Recomputation::attention_core;
    (made_inside ? recomputed : forward)[maker] = true;
  }
};

/// What else a layer saves goes where its segment says.
void split_saves(Layer& layer, const CheckpointedSegment* segment) {
  const Saves& saves = layer.saves;
  layer.recomputed_elements = 0;
  layer.recomputed_fixed = 0_B;
  if (segment != nullptr) {
    const bool is_core = segment->recomputation == Recomputation::attention_core;
    layer.recomputed_elements = is_core ? layer.attention_core->elements : saves.elements;
    layer.recomputed_fixed = is_core ? layer.attention_core->fixed : saves.fixed;
  }
  layer.kept_elements = saves.elements - layer.recomputed_elements;
  layer.kept_fixed = saves.fixed - layer.recomputed_fixed;
}

void find_kept(Network& network, const std::vector<Flow>& inputs,
               const std::vector<std::optional<size_t>>& branches, const Flow& output,
               bool output_is_input) {
  KeptTensors kept{std::vector<bool>(inputs.size()), std::vector<bool>(inputs.size())};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Layer& layer = network.layers[i];
    const CheckpointedSegment* segment = network.segment_of(i);
    const bool enters = segment != nullptr && segment->first == i;
    if (inputs[i].maker && (layer.saves.input || enters)) {
      kept.keep(*inputs[i].maker, segment);
    }
    if (layer.saves.output) {
      kept.keep(i, segment);
    }
    // A segment keeps what it reads from outside, to run again.
    const bool keeps_branch = layer.saves.branch || (segment != nullptr && layer.aside);
    if (keeps_branch && branches[i]) {
      kept.keep(*branches[i], segment);
    }
  }
  if (output.maker && (network.loss.saves.input || output_is_input)) {
    kept.keep(*output.maker, nullptr);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    Layer& layer = network.layers[i];
    split_saves(layer, network.segment_of(i));
    const int64_t elements = elements_of(layer.output);
    layer.kept_elements += kept.forward[i] ? elements : 0;
    layer.recomputed_elements += kept.recomputed[i] ? elements : 0;
  }
  split_saves(network.loss, nullptr);
}

}  // namespace

void account(Network& network, const ModuleBorders& borders) {
  std::vector<Flow> inputs;
  std::vector<bool> gets_gradient;  ///< the output of each layer
  std::vector<Branches> branches;
  std::vector<std::optional<size_t>> branch_makers;  ///< of what is read beside the input
  Flow flow{std::nullopt, borders.input_has_gradient};
  for (size_t i = 0; i < network.layers.size(); ++i) {
    Layer& layer = network.layers[i];
    const bool trainable = is_trainable(network, layer);
    const Flow other = beside(layer, branches);
    prune_gradients(layer, flow.has_gradient || other.has_gradient, trainable);
    layer.weight_elements = weights_read(network, layer);
    inputs.push_back(flow);
    branch_makers.push_back(other.maker);
    flow = after_layer(layer, i, flow, trainable, branches);
    flow.has_gradient = flow.has_gradient || other.has_gradient;
    gets_gradient.push_back(flow.has_gradient);
  }
  ensure(branches.empty(), "every residual is closed");
  prune_gradients(network.loss, flow.has_gradient, false);
  // Autograd never comes to a segment whose output needs no gradient, so nothing runs again.
  std::erase_if(network.segments,
                [&](const CheckpointedSegment& segment) { return !gets_gradient[segment.last]; });
  find_kept(network, inputs, branch_makers, flow, borders.output_is_input);
}

}  // namespace lockstep
