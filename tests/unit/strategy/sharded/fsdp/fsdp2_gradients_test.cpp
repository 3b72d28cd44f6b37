// What fully_shard does with gradients that nobody has reduced. Of two Gloo ranks under torch 2.11
// with inputs of 1 and 2, a backward without set_requires_gradient_sync, zero_grad of the optimizer
// and a backward with it leave the gradient 3: both backwards, (1 + 2) / 2 each.
#include <catch2/catch.hpp>

#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace fsdp2_gradients_test {

namespace {

// The first backward stays on the rank; the second is reduced and steps.
Program train_in_two(Rank& rank, Strategy* strategy, bool zeroes, std::vector<Values>* parameters) {
  co_await strategy->setup(rank, Stage::fit);
  for (const bool synchronise : {false, true}) {
    StepOptions options;
    options.synchronise = synchronise;
    const Batch batch = two_samples(rank.id(), synchronise ? 1 : 0);
    co_await strategy->forward(rank, batch, options);
    co_await strategy->backward(rank, options);
    if (!synchronise && zeroes) {
      co_await strategy->zero_gradients(rank, 0, true);
    }
  }
  co_await strategy->optimizer_step(rank, {});
  const Ticket all = rank.event();
  co_await rank.settle(all);
  for (const HeldParameter& held : strategy->held_parameters()) {
    parameters->push_back(rank.read(held.value));
  }
}

std::vector<std::vector<double>> weights_of(const Network& network, const MakeStrategy& make,
                                            bool zeroes) {
  const TrainingPlan plan = plan_for(network, true);
  constexpr int32_t ranks = 2;
  Trained trained;
  trained.parameters.resize(ranks);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    trained.strategies.push_back(make(plan));
  }
  RunOptions options;
  options.world_size = ranks;
  options.numerics = true;
  options.network = &network;
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost costs(ranks, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &costs;
  trained.result = sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return train_in_two(rank, trained.strategies[index].get(), zeroes, &trained.parameters[index]);
  });
  return whole_parameters(trained, network);
}

}  // namespace

TEST_CASE("zero_grad does not reach what fully_shard has not reduced, and does under FSDP1") {
  const Network network = with_block();
  const MakeStrategy second = [](const TrainingPlan& plan) {
    return std::make_unique<FullyShard2>(plan, FullyShard2Options());
  };
  const MakeStrategy first = [](const TrainingPlan& plan) {
    return std::make_unique<FullyShardedDataParallel>(plan, FullyShardedOptions());
  };
  CHECK(weights_of(network, second, true) == weights_of(network, second, false));
  CHECK(weights_of(network, first, true) != weights_of(network, first, false));
  CHECK(weights_of(network, first, false) == weights_of(network, second, false));
}

}  // namespace fsdp2_gradients_test
