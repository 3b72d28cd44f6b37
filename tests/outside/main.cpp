// A strategy that Lockstep does not have, written against its installed headers: every rank trains
// on its own data and after each optimizer step the parameters are averaged (synchronous model
// averaging).
#include <cstdio>
#include <memory>
#include <vector>

#include "model/network/build.hpp"
#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/registry.hpp"
#include "sim/plain_cost.hpp"
#include "sim/simulation.hpp"

using namespace lockstep;

class ModelAveraging final : public DistributedStrategy {
 public:
  explicit ModelAveraging(const TrainingPlan& training)
      : DistributedStrategy(training), replica_(training, DeviceId{0}) {}

  std::string_view name() const override { return "model_averaging"; }

  Program setup(Rank& rank, Stage) override {
    replica_.allocate(rank);
    co_return;
  }

  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override {
    co_await rank.settle_all(averaged_);
    loss_ready_ = replica_.forward(rank, batch, options);
  }

  Program backward(Rank& rank, const StepOptions& options) override {
    replica_.backward_of_loss(rank, options);
    for (const size_t layer : replica_.layers_last_to_first()) {
      replica_.backward(rank, layer);
    }
    replica_.forget_forward(rank);
    co_return;
  }

  Program optimizer_step(Rank& rank, const UpdateOptions& options) override {
    const Ticket updated = replica_.optimizer_step(rank, options, site_id("model_averaging: step"));
    averaged_.clear();
    for (const Replica::Parameter& parameter : replica_.parameters()) {
      averaged_.push_back(rank.all_reduce(
          world_group, parameter.tensor.value, Reduction::avg,
          {communication_stream, {updated}, site_id("model_averaging: all_reduce")}));
    }
    co_return;
  }

  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override {
    replica_.zero_gradients(rank, optimizer, set_to_none);
    co_return;
  }

  Program teardown(Rank& rank) override { co_await rank.settle_all(averaged_); }

  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }

 private:
  Replica replica_;
  Ticket loss_ready_;
  std::vector<Ticket> averaged_;
};

static Program train(Rank& rank, Strategy* strategy, std::vector<Values>* parameters) {
  const StepOptions options;
  Batch batch;
  batch.samples = {rank.id()};
  co_await strategy->setup(rank, Stage::fit);
  for (int step = 0; step < 2; ++step) {
    co_await strategy->forward(rank, batch, options);
    co_await strategy->backward(rank, options);
    co_await strategy->optimizer_step(rank, {});
    co_await strategy->zero_gradients(rank, 0, true);
  }
  co_await strategy->teardown(rank);
  for (const Replica::Parameter& parameter : strategy->replica().parameters()) {
    parameters->push_back(rank.read(parameter.tensor.value));
  }
}

static Network small_network() {
  LayerDescription layer;
  layer.kind = "Linear";
  layer.arguments = {{"", int64_t{4}}, {"", int64_t{2}}};
  NetworkDescription description;
  description.input = Shape{4};
  description.layers = {layer};
  description.loss.kind = "MSELoss";
  return build_network(description).network;
}

int main() {
  StrategyRegistry registry = standard_strategies();
  StrategyEntry entry;
  entry.name = "model_averaging";
  entry.make = [](const TrainingPlan& training, const StrategyArguments&) {
    return std::make_unique<ModelAveraging>(training);
  };
  registry.add(entry);  // the one line of registration

  const Network network = small_network();
  TrainingPlan training;
  training.network = &network;
  training.numerics = true;
  constexpr int32_t ranks = 4;
  std::vector<std::unique_ptr<Strategy>> strategies;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    strategies.push_back(registry.find("model_averaging")->make(training, {}));
  }
  RunOptions options;
  options.world_size = ranks;
  options.numerics = true;
  options.network = &network;
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(ranks, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  std::vector<std::vector<Values>> parameters(ranks);
  const RunResult result = sim::simulate(options, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return train(rank, strategies[index].get(), &parameters[index]);
  });
  bool agree = !result.hung && !parameters[0].empty();
  for (const std::vector<Values>& each : parameters) {
    agree = agree && each == parameters[0];
  }
  std::printf("model averaging over %d ranks: replicas %s after %.1f us\n", ranks,
              agree ? "agree" : "DIFFER", seconds(result.total_time) * 1e6);
  return agree ? 0 : 1;
}
