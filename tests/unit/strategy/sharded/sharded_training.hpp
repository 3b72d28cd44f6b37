#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/unit/strategy/simulated.hpp"

namespace lockstep::test {

inline TrainingPlan plan_for(const Network& network, bool numerics) {
  TrainingPlan plan;
  plan.network = &network;
  plan.optimizers = {{{.lr = 0.5}}};
  plan.numerics = numerics;
  plan.integer_values = true;
  return plan;
}

/// 4 - 8 - 8 - 8 - 2, whose middle are two blocks, checkpointed as the word says.
inline Network with_block(const std::string& checkpoint = "false") {
  LayerDescription block{.kind = "Sequential",
                         .arguments = {{"checkpoint", checkpoint}},
                         .layers = {linear(8, 8), {.kind = "ReLU"}}};
  NetworkDescription description;
  description.name = "blocks";
  description.input = {4};
  description.layers = {linear(4, 8), block, block, linear(8, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return std::move(built.network);
}

inline Batch two_samples(int32_t rank, int64_t step) {
  const int64_t first = 8 * step + 2 * rank;
  return {{first, first + 1}};
}

inline MakeStrategy ddp() {
  return [](const TrainingPlan& plan) {
    return std::make_unique<DistributedDataParallel>(plan, DataParallelOptions());
  };
}

/// Parameters put together from what the ranks hold, in definition order.
inline std::vector<std::vector<double>> whole_parameters(const Trained& trained,
                                                         const Network& network) {
  std::vector<std::vector<double>> whole;
  for (const ParameterPlace place : network.parameters()) {
    whole.emplace_back(static_cast<size_t>(network.parameter(place).elements()), -1000.0);
  }
  for (size_t rank = 0; rank < trained.strategies.size(); ++rank) {
    const std::vector<HeldParameter> held = trained.strategies[rank]->held_parameters();
    REQUIRE(held.size() == trained.parameters[rank].size());
    for (size_t i = 0; i < held.size(); ++i) {
      const Values& values = trained.parameters[rank][i];
      for (int64_t element = 0; element < values.size(); ++element) {
        whole[held[i].parameter].at(static_cast<size_t>(held[i].first_element + element)) =
            values.number(element);
      }
    }
  }
  return whole;
}

}  // namespace lockstep::test
