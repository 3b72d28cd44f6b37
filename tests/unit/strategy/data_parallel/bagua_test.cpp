// Bagua's algorithms over the simulator, against what their formulas give.
#include "model/strategy/data_parallel/bagua/bagua.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/strategy/data_parallel/bagua/bagua_buckets.hpp"
#include "model/strategy/data_parallel/bagua/bagua_sites.hpp"
#include "model/strategy/data_parallel/bagua/decentralized.hpp"
#include "model/strategy/local_model/batch_values.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace bagua_test {

namespace {

MakeStrategy bagua_of(const BaguaOptions& options) {
  return [options](const TrainingPlan& plan) { return std::make_unique<Bagua>(plan, options); };
}

BaguaOptions with(BaguaAlgorithm algorithm) {
  BaguaOptions options;
  options.algorithm = algorithm;
  return options;
}

/// One weight w and no bias: a chunk of the codec then has one number, which it keeps.
Network one_weight() {
  LayerDescription layer = linear(1, 1);
  layer.arguments.push_back({"bias", false});
  NetworkDescription description;
  description.name = "one weight";
  description.input = {1};
  description.layers = {layer};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return std::move(built.network);
}

TrainingPlan smooth_plan(const Network& network) {
  TrainingPlan plan = plan_for(network, true);
  plan.optimizers = {{{.lr = 0.03125}}};
  return plan;
}

using Numbers = std::vector<double>;

/// Of all parameters, one behind the other.
Numbers weights_of(const Trained& trained, size_t rank) {
  Numbers numbers;
  for (const Values& values : trained.parameters.at(rank)) {
    for (int64_t i = 0; i < values.size(); ++i) {
      numbers.push_back(values.number(i));
    }
  }
  return numbers;
}

std::vector<Numbers> all_weights(const Trained& trained) {
  std::vector<Numbers> all;
  for (size_t rank = 0; rank < trained.parameters.size(); ++rank) {
    all.push_back(weights_of(trained, rank));
  }
  return all;
}

/// What a rank makes of its own samples alone from common weights, in so many steps.
Numbers alone(const TrainingPlan& plan, int32_t rank, int64_t steps, const Shard& shard) {
  const Shard own = [&](int32_t, int64_t step) { return shard(rank, step); };
  return weights_of(train_simulated(plan, 1, ddp(), own, steps), 0);
}

/// d loss / d w of the network of one weight: the mean over samples of 2 x (w x - t).
double gradient(const TrainingPlan& plan, double weight, const Batch& batch) {
  const Values x = batch_inputs(plan, batch);
  const Values t = batch_targets(plan, batch);
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    sum += 2 * x.number(i) * (weight * x.number(i) - t.number(i));
  }
  return sum / static_cast<double>(x.size());
}

double first_weight(const TrainingPlan& plan) {
  return Replica(plan, DeviceId{0}).state().initial_value(0, 0).number(0);
}

std::vector<int64_t> bytes_at(const Trained& trained, std::string_view site, OpKind kind) {
  std::vector<int64_t> bytes;
  for (const Row& row : rows_at(trained.result, 0, site, kind)) {
    bytes.push_back(row.bytes);
  }
  return bytes;
}

using Peers = std::vector<int32_t>;
using Sizes = std::vector<int64_t>;

Peers peers_of(int32_t members, int64_t step) {
  Peers peers;
  for (int32_t member = 0; member < members; ++member) {
    peers.push_back(shift_one_peer(member, members, step));
  }
  return peers;
}

void check_near(const Numbers& found, const Numbers& expected, double margin) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == Approx(expected[i]).margin(margin));
  }
}

}  // namespace

TEST_CASE("parameters fill buckets from the last to the first, beyond 10 MiB by up to one") {
  const Network network = network_of_tensors({0.5, 10, 10, 10, 4, 0.25});
  TrainingPlan plan;
  plan.network = &network;
  const Replica replica(plan, DeviceId{0});
  CHECK(bagua_buckets(replica, BaguaOptions().bucket_size) ==
        BucketAssignment{{5, 4, 3}, {2}, {1}, {0}});
}

TEST_CASE("gradient_allreduce trains to the weights of ddp") {
  const Network network = with_block();
  const TrainingPlan plan = smooth_plan(network);
  const Trained expected = train_simulated(plan, 4, ddp(), two_samples, 3);
  for (const bool flatten : {true, false}) {
    for (const Bytes size : {Bytes(1), Bytes(100), Bytes(1 << 20)}) {
      BaguaOptions options;
      options.flatten = flatten;
      options.bucket_size = size;
      const Trained trained = train_simulated(plan, 4, bagua_of(options), two_samples, 3);
      CHECK(all_weights(trained) == all_weights(expected));
      CHECK(std::isfinite(weights_of(trained, 0).front()));
    }
  }
}

TEST_CASE("bytegrad gives all ranks the same weights, near those of ddp and not these") {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, true);
  const Trained exact = train_simulated(plan, 4, ddp(), two_samples, 1);
  const Trained trained =
      train_simulated(plan, 4, bagua_of(with(BaguaAlgorithm::bytegrad)), two_samples, 1);
  const std::vector<Numbers> weights = all_weights(trained);
  for (const Numbers& of_rank : weights) {
    CHECK(of_rank == weights.front());
  }
  const Numbers expected = weights_of(exact, 0);
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i] - weights.front()[i]));
  }
  CHECK(largest > 0);
  // Two passes, each at most a level of some rank's range off; the step is lr times that.
  double range = 0;
  const Numbers start = weights_of(train_simulated(plan, 1, ddp(), two_samples, 0), 0);
  for (int32_t rank = 0; rank < 4; ++rank) {
    const Numbers after = alone(plan, rank, 1, two_samples);
    for (size_t i = 0; i < after.size(); ++i) {
      range = std::max(range, std::abs(after[i] - start[i]));
    }
  }
  CHECK(largest <= 2 * 2 * range / 255);
}

// 4 x 8 + 8, twice 8 x 8 + 8, 8 x 2 + 2: 202 numbers, padded to 204 of four ranks.
TEST_CASE("bytegrad sends whole chunks and the own mean as bytes") {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, false);
  const Trained trained =
      train_simulated(plan, 4, bagua_of(with(BaguaAlgorithm::bytegrad)), two_samples, 1);
  constexpr int64_t chunk = 32 + 64;  // 51 numbers
  CHECK(bytes_at(trained, bagua_sites::exchange_chunks, OpKind::all_to_all) == Sizes{4 * chunk});
  CHECK(bytes_at(trained, bagua_sites::gather_chunks, OpKind::all_gather) == Sizes{chunk});
}

TEST_CASE("peers of shift_one meet all of the other half in turn") {
  CHECK(peers_of(8, 0) == Peers{4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(peers_of(8, 1) == Peers{5, 6, 7, 4, 3, 0, 1, 2});
  CHECK(peers_of(8, 2) == Peers{6, 7, 4, 5, 2, 3, 0, 1});
  CHECK(peers_of(8, 3) == Peers{7, 4, 5, 6, 1, 2, 3, 0});
  CHECK(peers_of(4, 0) == Peers{2, 3, 0, 1});
  CHECK(peers_of(4, 1) == Peers{3, 2, 1, 0});
  for (int64_t step = 0; step < 20; ++step) {
    for (const int32_t members : {2, 6, 12}) {
      const Peers peers = peers_of(members, step);
      for (int32_t member = 0; member < members; ++member) {
        CHECK(peers[static_cast<size_t>(peers[static_cast<size_t>(member)])] == member);
      }
    }
  }
}

// x2 = mean of x1 - lr g(own x1), where x1 - lr g(x1) is what two steps alone give.
TEST_CASE("decentralized averages weights and steps from the gradient at the own ones") {
  const Network network = with_block();
  const TrainingPlan plan = smooth_plan(network);
  const Trained trained =
      train_simulated(plan, 4, bagua_of(with(BaguaAlgorithm::decentralized)), two_samples, 2);
  BaguaOptions pairs = with(BaguaAlgorithm::decentralized);
  pairs.shift_one = true;
  const Trained paired = train_simulated(plan, 4, bagua_of(pairs), two_samples, 2);
  std::vector<Numbers> first;
  std::vector<Numbers> second;
  for (int32_t rank = 0; rank < 4; ++rank) {
    first.push_back(alone(plan, rank, 1, two_samples));
    second.push_back(alone(plan, rank, 2, two_samples));
  }
  for (size_t rank = 0; rank < 4; ++rank) {
    const auto peer = static_cast<size_t>(shift_one_peer(static_cast<int32_t>(rank), 4, 1));
    Numbers of_all;
    Numbers of_pair;
    for (size_t i = 0; i < first[rank].size(); ++i) {
      const double step = first[rank][i] - second[rank][i];
      of_all.push_back((first[0][i] + first[1][i] + first[2][i] + first[3][i]) / 4 - step);
      of_pair.push_back((first[rank][i] + first[peer][i]) / 2 - step);
    }
    check_near(weights_of(trained, rank), of_all, 1e-4);
    check_near(weights_of(paired, rank), of_pair, 1e-4);
  }
  CHECK(weights_of(trained, 0) != weights_of(trained, 1));
}

TEST_CASE("with an interval of two, every other step of decentralized is the own one") {
  const Network network = with_block();
  const TrainingPlan plan = smooth_plan(network);
  BaguaOptions options = with(BaguaAlgorithm::decentralized);
  options.communication_interval = 2;
  const Trained trained = train_simulated(plan, 4, bagua_of(options), two_samples, 2);
  for (int32_t rank = 0; rank < 4; ++rank) {
    check_near(weights_of(trained, static_cast<size_t>(rank)), alone(plan, rank, 2, two_samples),
               1e-6);
  }
  CHECK(bytes_at(trained, bagua_sites::average_weights, OpKind::all_reduce) == Sizes{202 * 4});
}

TEST_CASE("shift_one raises with an odd number of ranks") {
  const Network network = with_block();
  const TrainingPlan plan = smooth_plan(network);
  BaguaOptions options = with(BaguaAlgorithm::decentralized);
  options.shift_one = true;
  const Trained trained = train_simulated(plan, 3, bagua_of(options), two_samples, 1);
  for (const RankEnd& end : trained.result.ends) {
    CHECK(end.kind == RankEnd::Kind::raised);
  }
}

// The codec keeps the only number of a chunk: x = (w + l + r) / 3 + the own step.
TEST_CASE("low precision averages with both neighbours of the ring") {
  const Network network = one_weight();
  const TrainingPlan plan = smooth_plan(network);
  const Trained trained = train_simulated(
      plan, 4, bagua_of(with(BaguaAlgorithm::low_precision_decentralized)), two_samples, 3);
  std::vector<double> weights(4, first_weight(plan));
  std::vector<double> synchronised = weights;
  for (int64_t step = 0; step < 3; ++step) {
    for (int32_t rank = 0; rank < 4; ++rank) {
      double& weight = weights[static_cast<size_t>(rank)];
      weight -= plan.optimizers[0].lr * gradient(plan, weight, two_samples(rank, step));
    }
    std::vector<double> next;
    for (size_t rank = 0; rank < 4; ++rank) {
      const double average =
          (synchronised[rank] + synchronised[(rank + 3) % 4] + synchronised[(rank + 1) % 4]) / 3;
      next.push_back(average + weights[rank] - synchronised[rank]);
    }
    weights = next;
    synchronised = next;
  }
  for (size_t rank = 0; rank < 4; ++rank) {
    CHECK(weights_of(trained, rank).front() == Approx(weights[rank]).epsilon(1e-4));
  }
  CHECK(std::abs(weights[0] - weights[1]) > 1e-3);
}

TEST_CASE("low precision sends twice a byte for each number, and its range") {
  const Network network = with_block();
  const Trained trained =
      train_simulated(plan_for(network, false), 4,
                      bagua_of(with(BaguaAlgorithm::low_precision_decentralized)), two_samples, 1);
  constexpr int64_t bytes = 32 + 224;  // 202 numbers
  CHECK(bytes_at(trained, bagua_sites::swap_differences, OpKind::send) == Sizes{bytes, bytes});
}

// In the warm-up Adam of averaged gradients, whose last step leaves the moments as they are. Then
// each rank makes a first moment of its own gradient, and these are averaged.
TEST_CASE("qadam averages gradients in its warm-up, and first moments after it") {
  const Network network = one_weight();
  TrainingPlan plan = smooth_plan(network);
  plan.optimizers = {{{.kind = OptimizerKind::qadam, .lr = 0.125, .beta1 = 0.5, .beta2 = 0.75}}};
  plan.optimizers[0].warmup_steps = 3;
  const OptimizerPlan& optimizer = plan.optimizers[0];
  constexpr int64_t steps = 6;
  const Trained trained =
      train_simulated(plan, 4, bagua_of(with(BaguaAlgorithm::qadam)), two_samples, steps);
  double weight = first_weight(plan);
  double m = 0;
  double v = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    double mean = 0;
    for (int32_t rank = 0; rank < 4; ++rank) {
      mean += gradient(plan, weight, two_samples(rank, step - 1)) / 4;
    }
    if (step < optimizer.warmup_steps) {
      v = optimizer.beta2 * v + (1 - optimizer.beta2) * mean * mean;
    }
    if (step != optimizer.warmup_steps) {
      m = optimizer.beta1 * m + (1 - optimizer.beta1) * mean;
    }
    const auto number = static_cast<double>(step);
    const double root = std::sqrt(v) / std::sqrt(1 - std::pow(optimizer.beta2, number));
    weight -= optimizer.lr / (1 - std::pow(optimizer.beta1, number)) * m / (root + optimizer.eps);
  }
  for (size_t rank = 0; rank < 4; ++rank) {
    CHECK(weights_of(trained, rank).front() == Approx(weight).epsilon(1e-4));
  }
  CHECK(rows_at(trained.result, 0, bagua_sites::average_bucket, OpKind::all_reduce).size() == 3);
  CHECK(rows_at(trained.result, 0, bagua_sites::exchange_chunks, OpKind::all_to_all).size() == 3);
}

}  // namespace bagua_test
