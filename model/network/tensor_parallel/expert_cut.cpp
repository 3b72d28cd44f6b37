#include "model/network/tensor_parallel/expert_cut.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "model/core/nearest_sizes.hpp"
#include "model/network/accounting.hpp"
#include "model/network/mixture.hpp"

namespace lockstep {

namespace {

/// Why it cannot be divided, into `cut`; nothing where it can.
void check_experts(const Layer& layer, const ExpertPart& part, CutNetwork& cut) {
  const auto& mixture = std::get<MixtureArguments>(layer.arguments);
  cut.where = layer.name;
  if (mixture.num_experts % part.ranks != 0) {
    cut.why_not = fmt::format(
        "AssertionError: Number of experts should be a multiple of expert model parallel_size. ({} "
        "experts, {} ranks)",
        mixture.num_experts, part.ranks);
    cut.remedy =
        fmt::format("choose an expert_model_parallel_size that divides num_experts ({}): {}",
                    mixture.num_experts, divisors_of(mixture.num_experts, part.ranks));
  } else if (mixture.hidden_dim % part.tensor_ranks != 0) {
    cut.why_not = fmt::format("AssertionError: {} is not divisible by {}", mixture.hidden_dim,
                              part.tensor_ranks);
    cut.remedy = fmt::format(
        "set expert_tensor_parallel_size: 1, or a hidden_dim that {} divides, such as "
        "{}",
        part.tensor_ranks, nearest_multiples(mixture.hidden_dim, part.tensor_ranks));
  } else if (mixture.capacity_factor || mixture.aux_loss_coef > 0) {
    cut.why_not = "divided experts with capacity_factor or aux_loss_coef are not modelled";
    cut.remedy = "set capacity_factor: null and aux_loss_coef: 0";
    cut.is_unmodelled = true;
  }
}

/// Grouped weights are [experts, hidden, embed], of w2 [experts, embed, hidden].
void divide_experts(Layer& layer, const ExpertPart& part) {
  auto& mixture = std::get<MixtureArguments>(layer.arguments);
  mixture.ranks = part.ranks;
  mixture.tensor_ranks = part.tensor_ranks;
  for (size_t weight = 1; weight < layer.parameters.size(); ++weight) {
    ParameterTensor& parameter = layer.parameters[weight];
    const size_t hidden = weight == 2 ? 2 : 1;
    parameter.cut = TensorCut{.whole = parameter.shape,
                              .dimension = 0,
                              .parts = part.ranks,
                              .inner_dimension = hidden,
                              .inner_parts = part.tensor_ranks,
                              .by_experts = true};
    parameter.shape = parameter.cut->part_shape();
  }
  price_mixture(layer);
  // The busiest rank computes so much more; nearly all of it is the experts'.
  for (Work& work : layer.work) {
    const double load = part.ranks > 1 ? mixture.imbalance : 1;
    work.flops = Flops(std::llround(static_cast<double>(work.flops.count()) * load));
    work.elements = std::llround(static_cast<double>(work.elements) * load);
  }
}

}  // namespace

CutNetwork cut_by_experts(const Network& network, const ExpertPart& part) {
  CutNetwork cut;
  cut.network = with_grouped_experts(network);
  bool has_some = false;
  for (Layer& layer : cut.network.layers) {
    if (layer.kind != LayerKind::mixture_of_experts) {
      continue;
    }
    has_some = true;
    check_experts(layer, part, cut);
    if (!cut.why_not.empty()) {
      return cut;
    }
    divide_experts(layer, part);
  }
  if (!has_some && part.ranks > 1) {
    cut.why_not = "ValueError: num_moe_experts must be non None to use expert-parallel.";
    cut.remedy = "leave expert_model_parallel_size out, or train a model with experts";
  }
  account(cut.network);
  return cut;
}

}  // namespace lockstep
