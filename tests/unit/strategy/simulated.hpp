#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/network/build.hpp"
#include "model/strategy/ddp.hpp"
#include "model/strategy/replica.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

namespace lockstep::test {

inline LayerDescription linear(int64_t in, int64_t out) {
  LayerDescription layer;
  layer.kind = "Linear";
  layer.arguments = {{"", in}, {"", out}};
  return layer;
}

/// A small perceptron 4 - 6 - 2 with a mean squared error: every divisor is a power of two.
inline Network small_network() {
  NetworkDescription description;
  description.name = "small";
  description.input = {4};
  description.layers = {linear(4, 6), {.kind = "ReLU"}, linear(6, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the small network is sound");
  return built.network;
}

using MakeStrategy = std::function<std::unique_ptr<Strategy>(const TrainingPlan&)>;
/// Which samples a rank takes in a step; empty ends its data.
using Shard = std::function<Batch(int32_t rank, int64_t step)>;

struct Trained {
  RunResult result;
  std::vector<std::vector<Values>> parameters;  ///< by rank
};

inline Program train(Rank& rank, Strategy* strategy, Shard shard, int64_t steps,
                     std::vector<Values>* parameters) {
  co_await strategy->setup(rank);
  for (int64_t step = 0; step < steps; ++step) {
    const Batch batch = shard(rank.id(), step);
    if (batch.size() == 0) {
      break;
    }
    const StepOptions options;
    co_await strategy->forward(rank, batch, options);
    co_await strategy->backward(rank, options);
    co_await strategy->optimizer_step(rank);
    co_await strategy->zero_gradients(rank, true);
  }
  co_await strategy->join(rank);
  co_await strategy->teardown(rank);
  const Ticket all = rank.event();
  co_await rank.settle(all);
  for (const Replica::Parameter& parameter : strategy->replica().parameters()) {
    parameters->push_back(rank.read(parameter.tensor.value));
  }
}

inline Trained train_simulated(const TrainingPlan& plan, int32_t ranks, const MakeStrategy& make,
                               const Shard& shard, int64_t steps, int32_t devices = 1) {
  RunOptions options;
  options.world_size = ranks;
  options.devices_per_rank = devices;
  options.numerics = plan.numerics;
  options.network = plan.network;
  options.journal.lists = true;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(ranks, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  Trained trained;
  trained.parameters.resize(static_cast<size_t>(ranks));
  std::vector<std::unique_ptr<Strategy>> strategies;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    strategies.push_back(make(plan));
  }
  trained.result = sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return train(rank, strategies[index].get(), shard, steps, &trained.parameters[index]);
  });
  return trained;
}

}  // namespace lockstep::test
