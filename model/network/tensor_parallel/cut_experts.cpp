// What each of the ranks that divide the experts of a mixture has.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "model/network/tensor_parallel/network_cutter.hpp"

namespace lockstep {

namespace {

/// `layer`: as one rank has it, with all experts.
Layer with_own_experts(Layer layer, int32_t ranks, bool has_own_tokens) {
  auto& mixture = std::get<MixtureArguments>(layer.arguments);
  mixture.ranks = ranks;
  for (ParameterTensor& parameter : layer.parameters) {
    if (parameter.shape.size() < 3) {
      parameter.gradient_is_partial = has_own_tokens;
      continue;
    }
    parameter.cut = TensorCut{parameter.shape, 0, ranks, 1};
    parameter.shape.front() /= ranks;
  }
  // The busiest rank computes so much more; nearly all of it is the experts'.
  for (Work& work : layer.work) {
    work.flops = Flops(std::llround(static_cast<double>(work.flops.count()) * mixture.imbalance));
    work.elements = std::llround(static_cast<double>(work.elements) * mixture.imbalance);
  }
  return layer;
}

}  // namespace

bool NetworkCutter::can_divide_experts(const Layer& layer, const ParallelStyle& style) {
  const auto& mixture = std::get<MixtureArguments>(layer.arguments);
  const std::string module = layer.name + ".experts";
  if (style.kind != ParallelStyle::Kind::experts) {
    refuse(module, "experts are divided as a whole", "write ExpertParallel() for it");
  } else if (!mixture.grouped) {
    refuse(module,
           "ExpertParallel divides the first dimension of each weight, and these experts are "
           "modules of their own",
           "write `grouped: true` for the layer");
  } else if (mixture.num_experts % ranks_ != 0) {
    refuse(
        module,
        fmt::format("its {} experts cannot be divided among {} ranks", mixture.num_experts, ranks_),
        remedy_of_size(mixture.num_experts));
  } else if (mixture.capacity_factor || mixture.aux_loss_coef > 0) {
    refuse(module, "ExpertParallel with capacity_factor or aux_loss_coef is not modelled",
           "leave both out: torchtitan drops no token and balances without a loss");
    result_.is_unmodelled = true;
  } else if (layout_ == TensorLayout::features || is_distributed_) {
    refuse(module, fmt::format("its tokens arrive as {}", name_of(layout_)),
           "bring them to Shard(1) as plain tensors: each rank routes its own tokens");
  }
  return !is_refused();
}

/// Megatron-LM's experts are divided behind this: a rank routes its own positions.
void NetworkCutter::add_own_tokens(const Layer& layer) {
  if (layout_ != TensorLayout::sequence) {
    refuse(layer.name,
           "ValueError: During training, performance may degrade if MoE and tensor parallelism are "
           "enabled without also enabling sequence parallelism.",
           "set sequence_parallel: true");
    return;
  }
  Layer part = of_part(layer, 0, ranks_);
  part.parameters.front().gradient_is_partial = true;
  is_distributed_ = false;
  append(std::move(part));
}

void NetworkCutter::add_experts(const Layer& layer) {
  if (by_ == CutBy::megatron && ranks_ > 1) {
    add_own_tokens(layer);
    return;
  }
  const ParallelStyle* const style = style_of(layer.name + ".experts");
  if (style == nullptr) {
    add_plain(layer);
    return;
  }
  if (!can_divide_experts(layer, *style)) {
    return;
  }
  if (ranks_ == 1) {
    append(layer);
    return;
  }
  const bool has_own_tokens = layout_ == TensorLayout::sequence;
  if (!has_own_tokens) {
    result_.notes.push_back(fmt::format(
        "{}: every rank has all tokens and sends them all, so that each expert computes each token "
        "{} times, and its gradient is as many times too great: bring the tokens to Shard(1)",
        layer.name, ranks_));
  }
  append(
      with_own_experts(has_own_tokens ? of_part(layer, 0, ranks_) : layer, ranks_, has_own_tokens));
}

}  // namespace lockstep
