#include "model/strategy/ddp.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/single.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

TrainingPlan exact_plan(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizer.lr = 0.125;
  return plan;
}

MakeStrategy ddp(DataParallelOptions options = {}) {
  return [options](const TrainingPlan& plan) {
    return std::make_unique<DistributedDataParallel>(plan, options);
  };
}
MakeStrategy single() {
  return [](const TrainingPlan& plan) { return std::make_unique<SingleDevice>(plan); };
}

// Step t trains on samples [t * size, (t + 1) * size), strided over the ranks.
Shard strided(int32_t ranks, int64_t per_rank) {
  return [=](int32_t rank, int64_t step) {
    Batch batch;
    for (int64_t i = 0; i < per_rank; ++i) {
      batch.samples.push_back((step * per_rank + i) * ranks + rank);
    }
    return batch;
  };
}

BucketAssignment indices(std::initializer_list<std::vector<size_t>> buckets) { return buckets; }

std::vector<BucketedTensor> golden_tensors() {
  std::vector<BucketedTensor> tensors;
  for (const double mebibytes : {0.5, 10.0, 10.0, 10.0, 4.0, 0.25}) {
    tensors.push_back({DType::fp32, Bytes(static_cast<int64_t>(mebibytes * 1024 * 1024))});
  }
  return tensors;
}

}  // namespace

TEST_CASE("buckets close at their limit, as PyTorch's do") {
  const auto tensors = golden_tensors();
  const Bytes limits[] = {Bytes(1 << 20), Bytes(25 << 20)};
  CHECK(assign_buckets(tensors, {}) == indices({{0, 1, 2, 3, 4, 5}}));
  CHECK(assign_buckets(tensors, limits) == indices({{0, 1}, {2, 3, 4, 5}}));
  const size_t ready[] = {5, 4, 3, 2, 1, 0};
  CHECK(assign_buckets(tensors, ready, limits) == indices({{5, 4}, {3, 2, 1}, {0}}));
}

TEST_CASE("ddp on equal shards is one device on the whole batch, bit for bit") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  for (const int32_t ranks : {1, 2, 4}) {
    const Trained alone = train_simulated(plan, 1, single(), strided(1, 4 * ranks), 1);
    const Trained spread = train_simulated(plan, ranks, ddp(), strided(ranks, 4), 1);
    REQUIRE_FALSE(spread.result.hung);
    for (const auto& parameters : spread.parameters) {
      CHECK(parameters == alone.parameters.front());
    }
  }
}

TEST_CASE("ddp replicas stay equal whatever the knobs") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  DataParallelOptions small_buckets;
  small_buckets.bucket_cap = Bytes(64);
  DataParallelOptions views = small_buckets;
  views.gradient_as_bucket_view = true;
  DataParallelOptions unused;
  unused.find_unused_parameters = true;
  DataParallelOptions fixed;
  fixed.static_graph = true;
  const Trained plain = train_simulated(plan, 2, ddp(), strided(2, 2), 3);
  for (const DataParallelOptions& options : {small_buckets, views, unused, fixed}) {
    const Trained other = train_simulated(plan, 2, ddp(options), strided(2, 2), 3);
    REQUIRE_FALSE(other.result.hung);
    CHECK(other.parameters[0] == other.parameters[1]);
    CHECK(other.parameters == plain.parameters);
  }
}

TEST_CASE("uneven data hang ddp, and end under join with the last joiner's model everywhere") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Shard uneven = [](int32_t rank, int64_t step) {
    Batch batch;
    if (step < 2 + rank) {
      batch.samples = {step * 2 + rank};
    }
    return batch;
  };
  CHECK(train_simulated(plan, 2, ddp(), uneven, 10).result.hung);
  DataParallelOptions options;
  options.join = true;
  const Trained joined = train_simulated(plan, 2, ddp(options), uneven, 10);
  CHECK_FALSE(joined.result.hung);
  CHECK(joined.parameters[0] == joined.parameters[1]);
}
