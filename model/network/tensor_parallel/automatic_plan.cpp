#include "model/network/tensor_parallel/automatic_plan.hpp"

#include <optional>

#include "model/network/tensor_parallel/cut_layer.hpp"
#include "model/network/tensor_parallel/cut_network.hpp"

namespace lockstep {

namespace {

using Kind = ParallelStyle::Kind;

class PlanMaker {
 public:
  /// No ranks: whether sizes divide is not asked, and what Megatron-LM cuts is in the plan.
  PlanMaker(const Network& network, std::optional<int32_t> ranks, TensorLayout stream)
      : network_(network), ranks_(ranks), stream_(stream) {}

  ParallelPlan make();

 private:
  void add(std::string module, Kind kind, TensorLayout input, TensorLayout output) {
    const bool gives_plain_tensors = kind == Kind::column || kind == Kind::row;
    plan_.emplace_back(std::move(module), ParallelStyle{kind, input, output, gives_plain_tensors});
  }
  bool can_be_cut(const Layer& layer, Kind kind) const {
    return !ranks_ || cut_by(layer, kind, *ranks_).why_not.empty();
  }
  bool is_of_megatron() const { return !ranks_; }
  std::optional<size_t> partner_of(size_t first) const;
  bool add_projections(const Layer& layer);
  bool add_pair(size_t first, size_t second);
  bool add_last(size_t index);
  bool add_first(size_t index);

  const Network& network_;
  std::optional<int32_t> ranks_;
  TensorLayout stream_;  ///< of activations between modules
  ParallelPlan plan_;
};

/// The Linear behind this one, with nothing but activations in between.
std::optional<size_t> PlanMaker::partner_of(size_t first) const {
  for (size_t index = first + 1; index < network_.layers.size(); ++index) {
    const LayerKind kind = network_.layers[index].kind;
    if (kind == LayerKind::linear) {
      return index;
    }
    if (is_marker(kind) || !treats_elements_alike(kind)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

bool PlanMaker::add_projections(const Layer& layer) {
  if (ranks_ && !cut_inside(layer, *ranks_).why_not.empty()) {
    return false;
  }
  add(layer.name, Kind::input, stream_, TensorLayout::replicated);
  const std::vector<std::string> names = projections_of(layer.kind);
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    add(layer.name + "." + names[i], Kind::column, TensorLayout::replicated,
        TensorLayout::features);
  }
  add(layer.name + "." + names.back(), Kind::row, TensorLayout::features, stream_);
  return true;
}

bool PlanMaker::add_pair(size_t first, size_t second) {
  const Layer& in = network_.layers[first];
  const Layer& out = network_.layers[second];
  if (in.tied_layer || out.tied_layer || !can_be_cut(in, Kind::column) ||
      !can_be_cut(out, Kind::row)) {
    return false;
  }
  add(in.name, Kind::column, stream_, TensorLayout::features);
  add(out.name, Kind::row, TensorLayout::features, stream_);
  return true;
}

/// Its output goes to the loss, whole; to Megatron-LM's cross entropy in parts.
bool PlanMaker::add_last(size_t index) {
  const Layer& layer = network_.layers[index];
  if (index + 1 != network_.layers.size() || !can_be_cut(layer, Kind::column) ||
      (layer.tied_layer && !is_of_megatron())) {
    return false;
  }
  const bool in_parts = is_of_megatron() && network_.loss.kind == LayerKind::cross_entropy_loss;
  add(layer.name, Kind::column, stream_,
      in_parts ? TensorLayout::features : TensorLayout::replicated);
  return true;
}

bool PlanMaker::add_first(size_t index) {
  const Layer& layer = network_.layers[index];
  if (!can_be_cut(layer, Kind::row)) {
    return false;
  }
  // Learned positions are added before positions are divided.
  const bool has_positions = is_of_megatron() && index + 1 < network_.layers.size() &&
                             network_.layers[index + 1].kind == LayerKind::positional_embedding;
  add(layer.name, Kind::row, TensorLayout::replicated,
      has_positions ? TensorLayout::replicated : stream_);
  return true;
}

ParallelPlan PlanMaker::make() {
  const bool by_positions = stream_ == TensorLayout::sequence;
  for (size_t index = 0; index < network_.layers.size(); ++index) {
    const Layer& layer = network_.layers[index];
    if (has_projections(layer.kind)) {
      add_projections(layer);
    } else if (is_of_megatron() && is_fused_attention(layer.kind)) {
      add(layer.name, Kind::input, stream_, TensorLayout::replicated);
    } else if (layer.kind == LayerKind::embedding) {
      add_first(index);
    } else if (layer.kind == LayerKind::linear) {
      const std::optional<size_t> partner = partner_of(index);
      if (partner && add_pair(index, *partner)) {
        index = *partner;
      } else {
        add_last(index);
      }
    } else if (by_positions &&
               (layer.kind == LayerKind::layer_norm || layer.kind == LayerKind::rms_norm)) {
      add(layer.name, Kind::sequence, stream_, stream_);
    }
  }
  return std::move(plan_);
}

}  // namespace

ParallelPlan megatron_plan(const Network& network, bool by_positions) {
  return PlanMaker(network, std::nullopt,
                   by_positions ? TensorLayout::sequence : TensorLayout::replicated)
      .make();
}

ParallelPlan automatic_plan(const Network& network, int32_t ranks) {
  for (const TensorLayout stream : {TensorLayout::sequence, TensorLayout::replicated}) {
    ParallelPlan plan = PlanMaker(network, ranks, stream).make();
    if (!plan.empty() && cut_network(network, plan, ranks).why_not.empty()) {
      return plan;
    }
  }
  return {};
}

}  // namespace lockstep
