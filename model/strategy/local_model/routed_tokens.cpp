#include "model/strategy/local_model/routed_tokens.hpp"

#include <algorithm>

#include "model/network/arithmetic/expert_routing.hpp"
#include "model/network/mixture.hpp"

namespace lockstep {

RoutedTokens::RoutedTokens(const TrainingPlan& plan)
    : network_(plan.network),
      routes_tokens_(plan.numerics && !plan.valueless && has_mixtures(*plan.network)) {}

std::optional<Slice> RoutedTokens::begin_counting(Rank& rank, ForwardRecord& forward, size_t layer,
                                                  const LayerTurn& turn) const {
  const Layer& mixed = network_->layers[layer];
  if (!routes_tokens_ || mixed.kind != LayerKind::mixture_of_experts || !turn.training ||
      turn.again) {
    return std::nullopt;
  }
  const auto& mixture = std::get<MixtureArguments>(mixed.arguments);
  const Slice choices = forward.allocate_transient(rank, mixture.num_experts, DType::int64);
  rank.write(choices, Values(DType::int64, mixture.num_experts));
  forward.choices.emplace_back(layer, choices);
  return choices;
}

void RoutedTokens::note_load(const ForwardRecord& forward, size_t layer, const Values& choices) {
  if (choices.empty()) {
    return;
  }
  const std::string& name = network_->layers[layer].name;
  auto load = std::ranges::find(loads_, name, &ExpertLoad::layer);
  if (load == loads_.end()) {
    loads_.push_back({name, std::vector<int64_t>(static_cast<size_t>(choices.size()))});
    load = std::prev(loads_.end());
  }
  const auto& mixture = mixture_arguments(*network_, layer);
  const int64_t tokens =
      forward.samples * elements_of(network_->layers[layer].input) / mixture.embed_dim;
  const int64_t capacity = expert_capacity(mixture, tokens);
  for (int64_t expert = 0; expert < choices.size(); ++expert) {
    load->choices[static_cast<size_t>(expert)] += choices.integer(expert);
    load->dropped += std::max<int64_t>(0, choices.integer(expert) - capacity);
  }
}

void RoutedTokens::read(Rank& rank, ForwardRecord& forward) {
  for (const auto& [layer, slice] : forward.choices) {
    const auto& mixture = std::get<MixtureArguments>(network_->layers[layer].arguments);
    const Values counted = rank.read(slice);
    note_load(forward, layer, counted);
    const auto weights = static_cast<size_t>(mixture.weights_per_expert());
    for (int64_t expert = 0; !mixture.grouped && expert < counted.size(); ++expert) {
      for (size_t weight = 0; counted.integer(expert) == 0 && weight < weights; ++weight) {
        forward.unused.push_back({layer, 1 + static_cast<size_t>(expert) * weights + weight});
      }
    }
  }
  forward.choices.clear();
}

}  // namespace lockstep
