// Activation checkpointing as the replica does it: what runs again, when, at what price, and what
// stays in memory.
#include <catch2/catch.hpp>

#include "model/strategy/data_parallel/dp.hpp"
#include "model/strategy/data_parallel/single.hpp"
#include "model/strategy/local_model/batch_values.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace checkpointing_test {

namespace {

enum class Marked : uint8_t { none, torch, fairscale };

LayerDescription container(std::string kind, Marked marked, std::vector<LayerDescription> layers) {
  constexpr std::string_view words[] = {"false", "torch", "fairscale"};
  LayerDescription description;
  description.kind = std::move(kind);
  description.arguments = {{"checkpoint", std::string(words[static_cast<size_t>(marked)])}};
  description.layers = std::move(layers);
  return description;
}

Network built(std::vector<LayerDescription> layers) {
  NetworkDescription description;
  description.name = "checkpointed";
  description.input = {4};
  description.layers = std::move(layers);
  description.loss = {.kind = "MSELoss"};
  BuildResult result = build_network(description);
  ensure(result.ok(), "the network is sound");
  return std::move(result.network);
}

/// 4 - 8 - 8 - 8 - 8 - 2 with two segments: {Linear, ReLU, Linear} and {ReLU, Linear}.
Network perceptron(Marked marked) {
  return built({linear(4, 8),
                container("Sequential", marked, {linear(8, 8), {.kind = "ReLU"}, linear(8, 8)}),
                container("Sequential", marked, {{.kind = "ReLU"}, linear(8, 8)}), linear(8, 2)});
}

/// Four segments, in each of which three of four outputs go.
Network deep_perceptron(Marked marked) {
  std::vector<LayerDescription> layers = {linear(4, 8)};
  for (int turn = 0; turn < 4; ++turn) {
    layers.push_back(container("Sequential", marked,
                               {linear(8, 8), {.kind = "ReLU"}, linear(8, 8), {.kind = "ReLU"}}));
  }
  layers.push_back(linear(8, 2));
  return built(std::move(layers));
}

/// Batch norm on the inputs themselves, then a residual with a shortcut.
Network residual_with_batch_norm(Marked marked) {
  LayerDescription norm{.kind = "BatchNorm1d", .arguments = {{"", int64_t{4}}}};
  LayerDescription residual = container("Residual", marked, {linear(4, 4), {.kind = "ReLU"}});
  residual.shortcut = {linear(4, 4)};
  residual.shortcut[0].arguments.push_back({"name", std::string("project")});
  return built(
      {container("Sequential", marked, {norm, linear(4, 4)}), std::move(residual), linear(4, 2)});
}

TrainingPlan plan_of(const Network& network, bool numerics) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = numerics;
  plan.optimizers.front().lr = 0.125;
  plan.optimizers.front().momentum = 0.5;
  return plan;
}

MakeStrategy single() {
  return [](const TrainingPlan& plan) { return std::make_unique<SingleDevice>(plan); };
}
MakeStrategy ddp() {
  return [](const TrainingPlan& plan) {
    return std::make_unique<DistributedDataParallel>(plan, DataParallelOptions{});
  };
}
MakeStrategy dp() {
  return [](const TrainingPlan& plan) { return std::make_unique<DataParallel>(plan); };
}

Shard samples_of(int64_t each) {
  return [each](int32_t rank, int64_t step) {
    Batch batch;
    for (int64_t i = 0; i < each; ++i) {
      batch.samples.push_back((step * each + i) * 4 + rank);
    }
    return batch;
  };
}

// Forwards, recomputed forwards and backwards of layers of rank 0: "f3", "r3", "b3".
std::vector<std::string> layers_in_order(const RunResult& result) {
  std::vector<std::string> order;
  result.journal->lane(0, 0).for_each([&](const Row& row) {
    for (const auto& [site, letter] :
         {std::pair(replica_sites::layer_forward, 'f'), std::pair(replica_sites::recompute, 'r'),
          std::pair(replica_sites::layer_backward, 'b')}) {
      if (row.row == RowKind::op && row.kind == OpKind::compute && row.site == site_id(site)) {
        order.push_back(letter + std::to_string(row.tag));
      }
    }
  });
  return order;
}

DeviceMemory memory_of(const Trained& trained) { return trained.result.memory[0].at(DeviceId{0}); }

Bytes peak_of(const DeviceMemory& memory, Purpose purpose) {
  return memory.peak_by_purpose[static_cast<size_t>(purpose)];
}

Program one_step(Rank& rank, SingleDevice* strategy, const Batch* batch,
                 std::vector<Values>* buffers) {
  const StepOptions options;
  co_await strategy->setup(rank, Stage::fit);
  co_await strategy->forward(rank, *batch, options);
  co_await strategy->backward(rank, options);
  const Ticket end = rank.event();
  co_await rank.settle(end);
  for (const Slice& buffer : strategy->replica().state().buffer_values()) {
    buffers->push_back(rank.read(buffer));
  }
}

/// running_mean, running_var and num_batches_tracked after one forward and backward.
std::vector<Values> statistics_after_one_step(Marked marked, const Batch& batch) {
  const Network network = residual_with_batch_norm(marked);
  const TrainingPlan plan = plan_of(network, true);
  RunOptions options;
  options.numerics = true;
  options.network = &network;
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost links(1, BytesPerSecond(1'000'000'000), Time(1));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &links;
  SingleDevice strategy(plan);
  std::vector<Values> buffers;
  sim::simulate(options, simulation,
                [&](Rank& rank) { return one_step(rank, &strategy, &batch, &buffers); });
  return buffers;
}

}  // namespace

TEST_CASE("a segment runs again right before the backward of its last layer") {
  const Network network = perceptron(Marked::torch);
  const Trained trained = train_simulated(plan_of(network, true), 1, single(), samples_of(2), 1);
  CHECK(layers_in_order(trained.result) ==
        std::vector<std::string>{"f0", "f1", "f2", "f3", "f4", "f5", "f6", "b6", "r4", "r5", "b5",
                                 "b4", "r1", "r2", "r3", "b3", "b2", "b1", "b0"});
}

TEST_CASE("an evaluation runs nothing again and keeps what it always did") {
  const auto evaluated = [](Marked marked) {
    const Network network = perceptron(marked);
    const Asked asked = [](int32_t, int64_t) {
      StepOptions options;
      options.training = false;
      return options;
    };
    return memory_of(
        train_simulated(plan_of(network, true), 1, single(), samples_of(2), 1, 1, asked));
  };
  CHECK(evaluated(Marked::torch).peak == evaluated(Marked::none).peak);
}

TEST_CASE("the peak is parameters, gradients, optimizer, segment inputs and one segment's inside") {
  // A step that makes the optimizer's state, one that leaves gradients, one that has both.
  const auto third_step = [](Marked marked) {
    const Network network = perceptron(marked);
    const Asked asked = [](int32_t, int64_t step) {
      StepOptions options;
      options.synchronise = step != 1;
      return options;
    };
    return memory_of(
        train_simulated(plan_of(network, false), 1, single(), samples_of(2), 3, 1, asked));
  };
  const int64_t parameters = 4 * (4 * 8 + 8 + 3 * (8 * 8 + 8) + 8 * 2 + 2);
  const int64_t batch = 4 * 2 * (4 + 2);
  const int64_t loss = 4;
  // The peak is the backward of layer 5, of two samples in fp32: its incoming and outgoing
  // gradients have 8 elements each, and that of its weight, 8 x 8 + 8, is made before it is added.
  const int64_t gradients = 4 * (2 * (8 + 8) + 8 * 8 + 8);
  // Without: the outputs of layers 0, 2 and 4 are left; layer 6 has freed that of layer 5, and the
  // loss the predictions.
  const DeviceMemory plain = third_step(Marked::none);
  CHECK(peak_of(plain, Purpose::activation) == Bytes(4 * 2 * (8 + 8 + 8)));
  CHECK(peak_of(plain, Purpose::workspace) == Bytes(gradients));
  CHECK(plain.peak == Bytes(3 * parameters + batch + loss + 4 * 2 * 24 + gradients));
  // With: the inputs of both segments, and the output of one ReLU.
  const DeviceMemory memory = third_step(Marked::torch);
  CHECK(peak_of(memory, Purpose::activation) == Bytes(4 * 2 * (8 + 8 + 8)));
  CHECK(memory.peak == Bytes(3 * parameters + batch + loss + 4 * 2 * 24 + gradients));
  CHECK(memory.held == Bytes(2 * parameters + loss));  // gradients are None again
}

TEST_CASE("a step takes longer by the forward that runs again") {
  const auto total = [](bool marked) {
    LayerDescription price{.kind = "Cost",
                           .arguments = {{"forward", Time(1000)},
                                         {"backward", Time(2000)},
                                         {"parameters", int64_t{3}},
                                         {"checkpoint", marked}}};
    const Network network = built({price, price, price});
    return train_simulated(plan_of(network, false), 1, single(), samples_of(2), 1)
        .result.total_time;
  };
  // Two samples, three layers.
  CHECK(total(true) - total(false) == Time(2 * 3 * 1000));
}

TEST_CASE("checkpointing changes no bit of a training, whatever the strategy") {
  for (const bool with_norm : {false, true}) {
    const auto trained = [&](Marked marked, const MakeStrategy& make, int32_t ranks,
                             int32_t devices) {
      const Network network = with_norm ? residual_with_batch_norm(marked) : perceptron(marked);
      Trained result =
          train_simulated(plan_of(network, true), ranks, make, samples_of(4), 3, devices);
      REQUIRE_FALSE(result.result.hung);
      return result.parameters;
    };
    for (const Marked marked : {Marked::torch, Marked::fairscale}) {
      CHECK(trained(marked, single(), 1, 1) == trained(Marked::none, single(), 1, 1));
      CHECK(trained(marked, ddp(), 2, 1) == trained(Marked::none, ddp(), 2, 1));
      CHECK(trained(marked, dp(), 1, 2) == trained(Marked::none, dp(), 1, 2));
    }
  }
}

TEST_CASE("values computed or not, the memory of activations falls") {
  for (const bool numerics : {false, true}) {
    const auto activations = [&](Marked marked) {
      const Network network = deep_perceptron(marked);
      const Trained trained =
          train_simulated(plan_of(network, numerics), 1, single(), samples_of(64), 2);
      return peak_of(memory_of(trained), Purpose::activation);
    };
    CHECK(activations(Marked::torch) < activations(Marked::none));
  }
}

TEST_CASE("batch norm in a segment tracks its statistics twice, under FairScale's wrapper once") {
  const Network network = residual_with_batch_norm(Marked::none);
  const TrainingPlan plan = plan_of(network, true);
  const Batch batch{{0, 1, 2, 3}};
  const Values inputs = batch_inputs(plan, batch);
  const auto plain = statistics_after_one_step(Marked::none, batch);
  const auto once = statistics_after_one_step(Marked::fairscale, batch);
  const auto twice = statistics_after_one_step(Marked::torch, batch);
  // Momentum 0.1 from a mean of 0: 0.1 m, then 0.9 * 0.1 m + 0.1 m = 0.19 m; from a variance of 1:
  // 0.9 + 0.1 v, then 0.81 + 0.19 v.
  for (int64_t feature = 0; feature < 4; ++feature) {
    double mean = 0;
    for (int64_t sample = 0; sample < 4; ++sample) {
      mean += inputs.number(sample * 4 + feature) / 4;
    }
    double variance = 0;  // unbiased, as torch tracks it
    for (int64_t sample = 0; sample < 4; ++sample) {
      const double apart = inputs.number(sample * 4 + feature) - mean;
      variance += apart * apart / 3;
    }
    CHECK(plain[0].number(feature) == Approx(0.1 * mean).margin(1e-7));
    CHECK(once[0].number(feature) == Approx(0.1 * mean).margin(1e-7));
    CHECK(twice[0].number(feature) == Approx(0.19 * mean).margin(1e-7));
    CHECK(once[1].number(feature) == Approx(0.9 + 0.1 * variance));
    CHECK(twice[1].number(feature) == Approx(0.81 + 0.19 * variance));
  }
  CHECK(plain == once);
  CHECK(once[2].integer(0) == 1);
  CHECK(twice[2].integer(0) == 2);
}

}  // namespace checkpointing_test
