// Ranks that freeze layers which others train, or cut them in another way: defects that a scenario
// can state.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

void add_freezing_ranks(const std::vector<LayerSpec>& layers, std::set<int64_t>& ranks) {
  for (const LayerSpec& layer : layers) {
    for (const Placed<int64_t>& rank : layer.frozen_on) {
      ranks.insert(rank.value);
    }
    add_freezing_ranks(layer.layers, ranks);
    add_freezing_ranks(layer.shortcut, ranks);
  }
}

void freeze(std::vector<LayerSpec>& layers, int64_t rank) {
  for (LayerSpec& layer : layers) {
    if (std::ranges::count(layer.frozen_on, rank, &Placed<int64_t>::value) != 0) {
      layer.trainable = Placed<bool>{false, layer.place};
    }
    freeze(layer.layers, rank);
    freeze(layer.shortcut, rank);
  }
}

void add_network_of(int32_t rank, std::shared_ptr<const Network> network,
                    TrainingProgram& program) {
  program.networks_of_ranks.push_back(std::move(network));
  TrainingPlan plan = program.plan;
  plan.network = program.networks_of_ranks.back().get();
  program.plans_of_ranks.emplace(rank, std::move(plan));
}

}  // namespace

void prepare_frozen_on_ranks(Preparation& preparation, const std::vector<std::string>& checkpointed,
                             TrainingProgram& program) {
  const ModelSpec& model = *preparation.scenario->model;
  std::set<int64_t> ranks;
  add_freezing_ranks(model.layers, ranks);
  if (!ranks.empty() && program.whole_network != nullptr) {
    add_problem(preparation, Problem::Kind::unsupported, model.place,
                "`frozen_on` beside layers that ranks compute together is not modelled",
                "leave out parallelize_plan or frozen_on");
    return;
  }
  for (const int64_t rank : ranks) {
    if (rank >= preparation.options.world_size) {
      add_problem(preparation, Problem::Kind::invalid, model.place,
                  fmt::format("rank {} of `frozen_on` does not exist: there are {}", rank,
                              preparation.options.world_size));
      return;
    }
    Scenario scenario = *preparation.scenario;
    freeze(scenario.model->layers, rank);
    Preparation of_rank;  // whose problems are those of the common network
    of_rank.placement = preparation.placement;
    of_rank.scenario = std::make_shared<const Scenario>(std::move(scenario));
    std::shared_ptr<const Network> network = prepare_network(of_rank, checkpointed);
    if (network == nullptr) {
      return;
    }
    add_network_of(static_cast<int32_t>(rank), std::move(network), program);
  }
}

// Arguments that decide how layers are cut are those of each rank.
void prepare_cut_on_ranks(Preparation& preparation, const StrategyEntry& entry,
                          TrainingProgram& program) {
  if (!entry.cut) {
    return;
  }
  const std::shared_ptr<const Network> whole =
      program.whole_network == nullptr ? program.network : program.whole_network;
  for (const auto& [rank, arguments] : program.arguments_of_ranks) {
    std::optional<CutNetwork> cut =
        entry.cut(*whole, arguments, program.plan.world_size, program.plan.node_ranks);
    if (cut && !may_be_cut(preparation, *cut, fmt::format("rank {}: ", rank))) {
      return;
    }
    if (!cut && program.whole_network == nullptr) {
      continue;  // its arguments divide no layer: its network is that of all
    }
    add_network_of(rank, cut ? std::make_shared<const Network>(std::move(cut->network)) : whole,
                   program);
    program.plans_of_ranks.at(rank).whole_network = cut ? whole.get() : nullptr;
  }
}

}  // namespace lockstep
