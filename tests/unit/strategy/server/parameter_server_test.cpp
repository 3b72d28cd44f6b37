// Workers and servers together, over the simulator, against what the definitions give.
#include "model/strategy/server/parameter_server.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/strategy/server/server_sites.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace parameter_server_test {

namespace {

Program train_or_serve(Rank& rank, Strategy* strategy, Shard shard, int64_t steps, bool is_server,
                       std::vector<Values>* parameters) {
  if (is_server) {
    co_await strategy->serve(rank);
  } else {
    co_await strategy->setup(rank, Stage::fit);
    for (int64_t step = 0; step < steps; ++step) {
      const Batch batch = shard(rank.id(), step);
      if (batch.size() == 0) {
        break;
      }
      co_await strategy->forward(rank, batch, {});
      co_await strategy->backward(rank, {});
      co_await strategy->optimizer_step(rank, {});
      co_await strategy->zero_gradients(rank, 0, true);
    }
    co_await strategy->teardown(rank);
    co_await strategy->dismiss_servers(rank);
  }
  for (const HeldParameter& held : strategy->held_parameters()) {
    parameters->push_back(rank.read(held.value));
  }
}

Trained train_with_servers(TrainingPlan plan, int32_t workers, const ServerOptions& options,
                           const Shard& shard, int64_t steps) {
  RunOptions run;
  run.world_size = workers + options.servers;
  run.numerics = plan.numerics;
  run.network = plan.network;
  run.journal.lists = true;
  plan.world_size = run.world_size;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(run.world_size, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  Trained trained;
  trained.parameters.resize(static_cast<size_t>(run.world_size));
  for (int32_t rank = 0; rank < run.world_size; ++rank) {
    trained.strategies.push_back(std::make_unique<ParameterServer>(plan, options));
  }
  trained.result = sim::simulate(run, simulation, [&](Rank& rank) {
    const auto index = static_cast<size_t>(rank.id());
    return train_or_serve(rank, trained.strategies[index].get(), shard, steps, rank.id() >= workers,
                          &trained.parameters[index]);
  });
  CHECK_FALSE(trained.result.hung);
  return trained;
}

ServerOptions server_mode(ServerMode mode, int32_t servers = 1) {
  ServerOptions options;
  options.mode = mode;
  options.servers = servers;
  return options;
}

using Numbers = std::vector<double>;

Numbers numbers_of(const Trained& trained, size_t rank) {
  Numbers numbers;
  for (const Values& values : trained.parameters.at(rank)) {
    for (int64_t i = 0; i < values.size(); ++i) {
      numbers.push_back(values.number(i));
    }
  }
  return numbers;
}

TrainingPlan smooth(const Network& network, double momentum = 0) {
  TrainingPlan plan = plan_for(network, true);
  plan.integer_values = false;
  plan.optimizers = {{{.lr = 0.0009765625, .momentum = momentum}}};
  return plan;
}

int64_t bytes_of(const Trained& trained, int32_t rank, std::string_view site, OpKind kind) {
  int64_t bytes = 0;
  for (const Row& row : rows_at(trained.result, rank, site, kind)) {
    bytes += row.bytes;
  }
  return bytes;
}

int64_t model_bytes_of(const Network& network) {
  int64_t bytes = 0;
  for (const ParameterPlace place : network.parameters()) {
    bytes += network.parameter(place).elements() * 4;
  }
  return bytes;
}

}  // namespace

// Halves and quarters are exact, and both add gradients in the order of ranks.
TEST_CASE("a synchronous server trains to the weights of ddp, bit for bit") {
  const Network network = with_block();
  for (const double momentum : {0.0, 0.9}) {
    const TrainingPlan plan = smooth(network, momentum);
    for (const int32_t workers : {1, 2, 4}) {
      const Trained expected = train_simulated(plan, workers, ddp(), two_samples, 4);
      REQUIRE(std::isfinite(numbers_of(expected, 0).front()));
      for (const int32_t servers : {1, 2, 3}) {
        const Trained trained = train_with_servers(
            plan, workers, server_mode(ServerMode::sync, servers), two_samples, 4);
        Numbers of_servers;
        for (int32_t server = 0; server < servers; ++server) {
          const Numbers part = numbers_of(trained, static_cast<size_t>(workers + server));
          of_servers.insert(of_servers.end(), part.begin(), part.end());
        }
        for (int32_t worker = 0; worker < workers; ++worker) {
          CHECK(numbers_of(trained, static_cast<size_t>(worker)) == numbers_of(expected, 0));
        }
        CHECK(of_servers == numbers_of(expected, 0));
      }
    }
  }
}

TEST_CASE("K of W with K = W trains to the weights of ddp") {
  const Network network = with_block();
  const TrainingPlan plan = smooth(network, 0.5);
  const Trained expected = train_simulated(plan, 4, ddp(), two_samples, 3);
  ServerOptions options = server_mode(ServerMode::batched);
  options.batch = 4;
  const Trained trained = train_with_servers(plan, 4, options, two_samples, 3);
  const Numbers found = numbers_of(trained, 4);
  const Numbers wanted = numbers_of(expected, 0);
  REQUIRE(found.size() == wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {  // gradients are added as they come
    CHECK(found[i] == Approx(wanted[i]).epsilon(1e-5).margin(1e-6));
  }
}

TEST_CASE("a worker pulls and pushes the model in a step, and a server does so for all workers") {
  const Network network = with_block();
  constexpr int32_t workers = 3;
  constexpr int64_t steps = 2;
  const int64_t model = model_bytes_of(network);
  const Trained trained = train_with_servers(smooth(network), workers,
                                             server_mode(ServerMode::sync), two_samples, steps);
  using namespace server_sites;
  CHECK(bytes_of(trained, workers, gradient, OpKind::recv) == steps * workers * model);
  CHECK(bytes_of(trained, workers, answer, OpKind::send) == (steps + 1) * workers * model);
  const std::vector<Transfer> of_step = trained.strategies.front()->transfers_per_step();
  const auto find = [&of_step](std::string_view label) {
    const auto found = std::ranges::find(of_step, label, &Transfer::label);
    REQUIRE(found != of_step.end());
    return found->bytes.count();
  };
  CHECK(find("pushed") == model);
  CHECK(find("pulled") == model);
}

// Both gradients are computed by the first weights: w - lr g0 - lr g1, in either order.
TEST_CASE("an asynchronous server takes a whole step for each gradient") {
  const Network network = with_block();
  const TrainingPlan plan = smooth(network);
  const Trained one = train_with_servers(plan, 2, server_mode(ServerMode::async), two_samples, 1);
  const Trained mean = train_with_servers(plan, 2, server_mode(ServerMode::sync), two_samples, 1);
  const Trained none = train_with_servers(plan, 2, server_mode(ServerMode::sync), two_samples, 0);
  const Numbers first = numbers_of(none, 2);
  const Numbers found = numbers_of(one, 2);
  const Numbers of_mean = numbers_of(mean, 2);
  double moved = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] - first[i] == Approx(2 * (of_mean[i] - first[i])).margin(1e-6));
    moved += std::abs(found[i] - first[i]);
  }
  CHECK(moved > 0);
}

TEST_CASE("equal workers push gradients that are W - 1 updates old, but for their first") {
  const Network network = with_block();
  constexpr int64_t steps = 4;
  const Trained trained =
      train_with_servers(smooth(network), 4, server_mode(ServerMode::async), two_samples, steps);
  const std::optional<Staleness> staleness = trained.strategies.back()->staleness();
  REQUIRE(staleness);
  CHECK(staleness->pushes == 16);
  CHECK(staleness->mean() == Approx(3.0 / 2 / steps + 3.0 * (steps - 1) / steps));
  CHECK(staleness->most == 3);
  CHECK_FALSE(trained.strategies.front()->staleness());
}

TEST_CASE("servers hold equal parts of the weights, wherever tensors begin") {
  const Network network = with_block();
  TrainingPlan plan;
  plan.network = &network;
  const Replica replica(plan, DeviceId{0});
  const FlatWeights flat(replica, 3);
  int64_t next = 0;
  for (int32_t server = 0; server < 3; ++server) {
    const FlatWeights::Part part = flat.part(server);
    CHECK(part.begin == next);
    CHECK(std::abs(part.elements * 3 - flat.elements()) < 3);
    next += part.elements;
  }
  CHECK(next == flat.elements());
  CHECK(next * 4 == model_bytes_of(network));
}

TEST_CASE("a worker has no state of the optimizer, and a server room for two gradients beside") {
  const Network network = with_block();
  const int64_t model = model_bytes_of(network);
  const Trained trained =
      train_with_servers(smooth(network, 0.9), 4, server_mode(ServerMode::sync), two_samples, 2);
  const auto peak = [&trained](size_t rank, Purpose purpose) {
    return trained.result.memory[rank]
        .at(DeviceId{0})
        .peak_by_purpose[static_cast<size_t>(purpose)]
        .count();
  };
  CHECK(peak(0, Purpose::parameter) == model);
  CHECK(peak(0, Purpose::gradient) == model);
  CHECK(peak(0, Purpose::optimizer_state) == 0);
  CHECK(peak(4, Purpose::parameter) == model);
  CHECK(peak(4, Purpose::optimizer_state) == model);
  CHECK(peak(4, Purpose::gradient) == model);
  CHECK(peak(4, Purpose::communication) == 2 * model);
}

}  // namespace parameter_server_test
