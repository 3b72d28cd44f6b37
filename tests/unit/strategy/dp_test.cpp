#include "model/strategy/dp.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/single.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Lengths = std::vector<int64_t>;

TrainingPlan exact_plan(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizer.lr = 0.125;
  return plan;
}

Batch first_samples(int64_t count) {
  Batch batch;
  for (int64_t sample = 0; sample < count; ++sample) {
    batch.samples.push_back(sample);
  }
  return batch;
}

Trained train_dp(const TrainingPlan& plan, int32_t devices, int64_t samples, int64_t steps) {
  return train_simulated(
      plan, 1, [](const TrainingPlan& each) { return std::make_unique<DataParallel>(each); },
      [samples](int32_t, int64_t) { return first_samples(samples); }, steps, devices);
}

}  // namespace

TEST_CASE("dp cuts a batch as torch.chunk does") {
  CHECK(chunk_lengths(5, 4) == Lengths{2, 2, 1});
  CHECK(chunk_lengths(6, 4) == Lengths{2, 2, 2});
  CHECK(chunk_lengths(10, 4) == Lengths{3, 3, 3, 1});
  CHECK(chunk_lengths(64, 4) == Lengths{16, 16, 16, 16});
  CHECK(chunk_lengths(9, 8) == Lengths{2, 2, 2, 2, 1});
}

TEST_CASE("dp with equal chunks is one device on the whole batch, bit for bit") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Trained alone = train_simulated(
      plan, 1, [](const TrainingPlan& each) { return std::make_unique<SingleDevice>(each); },
      [](int32_t, int64_t) { return first_samples(8); }, 1);
  for (const int32_t devices : {1, 2, 4}) {
    CHECK(train_dp(plan, devices, 8, 1).parameters == alone.parameters);
  }
}

TEST_CASE("dp with a short last chunk weighs chunks, not samples") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Trained alone = train_simulated(
      plan, 1, [](const TrainingPlan& each) { return std::make_unique<SingleDevice>(each); },
      [](int32_t, int64_t) { return first_samples(3); }, 1);
  CHECK_FALSE(train_dp(plan, 2, 3, 1).parameters == alone.parameters);
}

TEST_CASE("dp sends the model to every other device at every forward and the gradients back") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Trained trained = train_dp(plan, 4, 8, 1);
  const Bytes parameters = Bytes(4) * network.parameter_elements();
  Bytes to_replicas{};
  Bytes to_root{};
  trained.result.journal->lane(0, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::op && row.kind == OpKind::copy) {
      if (row.site == site_id("dp: parameters to a replica")) {
        to_replicas += Bytes(row.bytes);
      } else if (row.site == site_id("dp: gradients to device 0")) {
        to_root += Bytes(row.bytes);
      }
    }
  });
  CHECK(to_replicas == parameters * 3);
  CHECK(to_root == parameters * 3);
}
