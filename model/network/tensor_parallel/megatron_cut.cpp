// What Megatron-LM cuts otherwise than torch: megatron/core/tensor_parallel/layers.py and
// mappings.py.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/network/tensor_parallel/automatic_plan.hpp"
#include "model/network/tensor_parallel/network_cutter.hpp"

namespace lockstep {

/// Its output is a sum over ranks, to which the bias is added once.
void NetworkCutter::add_bias_behind_sum(const std::string& module) {
  if (!pending_bias_) {
    return;
  }
  Layer bias = *std::exchange(pending_bias_, std::nullopt);
  auto& arguments = std::get<BiasArguments>(bias.arguments);
  arguments.shares = 1;
  if (layout_ == TensorLayout::sequence) {
    bias = of_part(bias, 0, ranks_);
    bias.parameters.front().gradient_is_partial = ranks_ > 1;
  }
  bias.module = bias.module.empty() ? module : bias.module;
  append(std::move(bias));
}

void NetworkCutter::add_fused_attention(const Layer& layer) {
  CutAttention cut = cut_fused_attention(layer, ranks_);
  if (!cut.why_not.empty()) {
    refuse(layer.name, cut.why_not, remedy_of_size(cut.divided));
    return;
  }
  is_distributed_ = false;
  append(std::move(cut.projection));
  append(std::move(cut.core));
  append(std::move(cut.output));
  pending_bias_ = std::move(cut.bias);
  const bool scatters = sees_sequence();
  if (scatters && shape_.front() % ranks_ != 0) {
    refuse(layer.name,
           fmt::format("its {} positions cannot be divided among {} ranks", shape_.front(), ranks_),
           remedy_of_positions());
    return;
  }
  exchange({.forward = scatters ? TensorExchange::reduce_scatter : TensorExchange::all_reduce,
            .backward = scatters ? TensorExchange::all_gather : TensorExchange::none,
            .ranks = ranks_},
           layer.name);
  layout_ = scatters ? TensorLayout::sequence : TensorLayout::replicated;
  add_bias_behind_sum(layer.name);
}

bool NetworkCutter::sees_sequence() const {
  return std::ranges::any_of(
      plan_, [](const auto& entry) { return entry.second.output == TensorLayout::sequence; });
}

/// scatter_to_sequence_parallel_region behind a learned embedding of positions, which gets whole
/// ones: each rank keeps its part, and gathers the gradients of all.
void NetworkCutter::scatter_positions(const Layer& layer) {
  if (by_ == CutBy::megatron && layer.kind == LayerKind::positional_embedding && sees_sequence()) {
    bring(TensorLayout::replicated, TensorLayout::sequence, false, 1, layer.name);
  }
}

/// The loss gets the scores of some classes on each rank.
void NetworkCutter::end_in_parts() {
  Layer& loss = result_.network.loss;
  if (loss.kind != LayerKind::cross_entropy_loss) {
    refuse(whole_.layers.back().name,
           "only CrossEntropyLoss takes the scores of some classes from each rank",
           "let the last Linear give output_layouts=Replicate()");
    return;
  }
  auto arguments = std::get<LossArguments>(loss.arguments);
  arguments.parts = ranks_;
  loss.arguments = arguments;
  loss.input.back() /= ranks_;
  for (Work& work : loss.work) {
    work.elements /= ranks_;
  }
  loss.saves.elements /= ranks_;
}

namespace {

/// The size of the vocabulary, where it is what the ranks of `layer` do not divide; else 0.
int64_t indivisible_vocabulary(const Network& whole, const Layer& layer, int32_t ranks) {
  int64_t size = 0;
  if (layer.kind == LayerKind::embedding) {
    size = std::get<EmbeddingArguments>(layer.arguments).num_embeddings;
  } else if (layer.kind == LayerKind::linear && &layer == &whole.layers.back()) {
    size = std::get<LinearArguments>(layer.arguments).out_features;
  }
  return size % ranks == 0 ? 0 : size;
}

}  // namespace

CutNetwork cut_as_megatron(const Network& whole, int32_t ranks, bool sequence_parallel) {
  const ParallelPlan plan = megatron_plan(whole, sequence_parallel);
  CutNetwork cut = NetworkCutter(whole, plan, ranks, CutBy::megatron).cut();
  if (cut.why_not.empty()) {
    return cut;
  }
  const auto found = std::ranges::find(whole.layers, cut.where, &Layer::name);
  const int64_t words =
      found == whole.layers.end() ? 0 : indivisible_vocabulary(whole, *found, ranks);
  if (words > 0) {
    const int64_t multiple = int64_t{128} * ranks;
    cut.remedy = fmt::format(
        "set the vocabulary to {}, in the embedding and in the last layer: Megatron-LM pads it to "
        "a multiple of 128 x tensor_model_parallel_size",
        (words + multiple - 1) / multiple * multiple);
  }
  return cut;
}

}  // namespace lockstep
