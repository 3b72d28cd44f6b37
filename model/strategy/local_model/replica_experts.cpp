// Which experts of a replica's mixtures get tokens.
#include <algorithm>

#include "model/network/arithmetic/expert_routing.hpp"
#include "model/network/mixture.hpp"
#include "model/strategy/local_model/forward_of.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// Memory for the choices of this forward.
Slice Replica::begin_counting(Rank& rank, const LayerRun& run) {
  const auto& mixture = std::get<MixtureArguments>(network().layers[run.layer].arguments);
  const Slice choices = transient(rank, mixture.num_experts, DType::int64);
  rank.write(choices, Values(DType::int64, mixture.num_experts));
  now_.choices.emplace_back(run.layer, choices);
  return choices;
}

/// Adds to what fell on each expert before. The capacity is that of this batch on this rank.
void Replica::note_load(size_t layer, const Values& choices) {
  if (choices.empty()) {
    return;
  }
  const std::string& name = network().layers[layer].name;
  auto load = std::ranges::find(expert_loads_, name, &ExpertLoad::layer);
  if (load == expert_loads_.end()) {
    expert_loads_.push_back({name, std::vector<int64_t>(static_cast<size_t>(choices.size()))});
    load = std::prev(expert_loads_.end());
  }
  const auto& mixture = mixture_arguments(network(), layer);
  const int64_t tokens =
      now_.samples * elements_of(network().layers[layer].input) / mixture.embed_dim;
  const int64_t capacity = expert_capacity(mixture, tokens);
  for (int64_t expert = 0; expert < choices.size(); ++expert) {
    load->choices[static_cast<size_t>(expert)] += choices.integer(expert);
    load->dropped += std::max<int64_t>(0, choices.integer(expert) - capacity);
  }
}

void Replica::read_routing(Rank& rank) {
  for (const auto& [layer, slice] : now_.choices) {
    const auto& mixture = std::get<MixtureArguments>(network().layers[layer].arguments);
    const Values counted = rank.read(slice);
    note_load(layer, counted);
    const auto weights = static_cast<size_t>(mixture.weights_per_expert());
    for (int64_t expert = 0; !mixture.grouped && expert < counted.size(); ++expert) {
      for (size_t weight = 0; counted.integer(expert) == 0 && weight < weights; ++weight) {
        now_.unused.push_back({layer, 1 + static_cast<size_t>(expert) * weights + weight});
      }
    }
  }
  now_.choices.clear();
}

bool Replica::is_unused(const Parameter& parameter) const {
  return !now_.unused.empty() && std::ranges::count(now_.unused, parameter.place) != 0;
}

Task<Ticket> forward_of(Rank& rank, Replica& replica, const Batch& batch,
                        const StepOptions& options) {
  if (!are_experts_divided(replica.network()) && !replica.plan().synchronises_batch_norm) {
    const Ticket ready = replica.forward(rank, batch, options);
    co_await await_routing(rank, replica, ready);
    co_return ready;
  }
  replica.begin_forward(rank, batch, options);
  for (size_t layer = 0; layer < replica.network().layers.size(); ++layer) {
    co_await rank.settle(replica.announce_tokens(rank, layer, options));
    replica.forward_layer(rank, layer, options);
    if (const std::optional<Ticket> gathered = replica.take_gathered()) {
      co_await rank.settle(*gathered);
    }
  }
  const Ticket ready = replica.end_forward(rank, options);
  co_await await_routing(rank, replica, ready);
  co_return ready;
}

Program await_routing(Rank& rank, Replica& replica, Ticket ready) {
  if (replica.routes_tokens()) {
    co_await rank.settle(ready);
    replica.read_routing(rank);
  }
}

}  // namespace lockstep
