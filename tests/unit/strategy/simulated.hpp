#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/network/build.hpp"
#include "model/strategy/data_parallel/ddp.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

namespace lockstep::test {

inline LayerDescription linear(int64_t in, int64_t out) {
  LayerDescription layer;
  layer.kind = "Linear";
  layer.arguments = {{"", in}, {"", out}};
  return layer;
}

/// A small perceptron 4 - hidden - 2 with a mean squared error: every divisor is a power of two. A
/// forward may leave out its first layer where that is square.
inline Network small_network(int64_t hidden = 6) {
  NetworkDescription description;
  description.name = "small";
  description.input = {4};
  description.layers = {linear(4, hidden), {.kind = "ReLU"}, linear(hidden, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the small network is sound");
  return built.network;
}

/// Layers that only cost, each with one parameter tensor of so many MiB of fp32.
inline Network network_of_tensors(const std::vector<double>& mebibytes) {
  NetworkDescription description;
  description.name = "tensors";
  description.input = {4};
  for (const double size : mebibytes) {
    LayerDescription layer;
    layer.kind = "Cost";
    layer.arguments = {{"forward", Time(1000)},
                       {"backward", Time(2000)},
                       {"parameters", static_cast<int64_t>(size * 1024 * 1024 / 4)}};
    description.layers.push_back(layer);
  }
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "a network of bare tensors is sound");
  return built.network;
}

using MakeStrategy = std::function<std::unique_ptr<Strategy>(const TrainingPlan&)>;
/// The samples that a rank takes in a step; empty ends its data.
using Shard = std::function<Batch(int32_t rank, int64_t step)>;
/// How a rank asks for a step; it steps the optimizer where it synchronises.
using Asked = std::function<StepOptions(int32_t rank, int64_t step)>;

struct Trained {
  RunResult result;
  std::vector<std::vector<Values>> parameters;  ///< by rank
  std::vector<std::unique_ptr<Strategy>> strategies;
};

/// Rows of one operation at one step of a strategy, in the order of one rank.
inline std::vector<Row> rows_at(const RunResult& result, int32_t rank, std::string_view step,
                                OpKind kind) {
  std::vector<Row> rows;
  result.journal->lane(rank, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::op && row.kind == kind && row.site == site_id(step)) {
      rows.push_back(row);
    }
  });
  return rows;
}

/// Their sizes.
inline std::vector<double> mebibytes_at(const RunResult& result, std::string_view step,
                                        OpKind kind) {
  std::vector<double> sizes;
  for (const Row& row : rows_at(result, 0, step, kind)) {
    sizes.push_back(static_cast<double>(row.bytes) / (1024 * 1024));
  }
  return sizes;
}

inline Program train(Rank& rank, Strategy* strategy, Shard shard, Asked asked, int64_t steps,
                     std::vector<Values>* parameters) {
  co_await strategy->setup(rank, Stage::fit);
  for (int64_t step = 0; step < steps; ++step) {
    const Batch batch = shard(rank.id(), step);
    if (batch.size() == 0) {
      break;
    }
    const StepOptions options = asked ? asked(rank.id(), step) : StepOptions();
    co_await strategy->forward(rank, batch, options);
    co_await strategy->backward(rank, options);
    if (options.synchronise) {
      co_await strategy->complete_gradients(rank, {});
      co_await strategy->optimizer_step(rank, {});
      co_await strategy->zero_gradients(rank, 0, true);
    }
  }
  MirroredIterations others;
  co_await strategy->join(rank, others);
  co_await strategy->teardown(rank);
  const Ticket all = rank.event();
  co_await rank.settle(all);
  for (const HeldParameter& held : strategy->held_parameters()) {
    parameters->push_back(rank.read(held.value));
  }
}

inline Trained train_simulated(const TrainingPlan& plan, int32_t ranks, const MakeStrategy& make,
                               const Shard& shard, int64_t steps, int32_t devices = 1,
                               const Asked& asked = {}) {
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
  for (int32_t rank = 0; rank < ranks; ++rank) {
    trained.strategies.push_back(make(plan));
  }
  trained.result = sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return train(rank, trained.strategies[index].get(), shard, asked, steps,
                 &trained.parameters[index]);
  });
  return trained;
}

}  // namespace lockstep::test
