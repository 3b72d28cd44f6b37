#include "model/strategy/data_parallel/ddp.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/data_parallel/single.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace ddp_test {

namespace {

TrainingPlan exact_plan(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizers.front().lr = 0.125;
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

namespace {

const std::vector<double> golden_sizes = {0.5, 10, 10, 10, 4, 0.25};

// Buckets that were reduced, in MiB, of all steps.
std::vector<double> reduced(const Network& network, const DataParallelOptions& options,
                            int64_t steps) {
  TrainingPlan plan;
  plan.network = &network;
  const Trained trained = train_simulated(plan, 2, ddp(options), strided(2, 4), steps);
  REQUIRE_FALSE(trained.result.hung);
  return mebibytes_at(trained.result, "ddp: all_reduce of a bucket", OpKind::all_reduce);
}

using Sizes = std::vector<double>;

}  // namespace

TEST_CASE("ddp reduces one bucket in its first step, from then on buckets in ready order") {
  const Network network = network_of_tensors(golden_sizes);
  // {0..5}, then {5,4}, {3,2,1}, {0}.
  CHECK(reduced(network, {}, 3) == Sizes{34.75, 4.25, 30, 0.5, 4.25, 30, 0.5});
}

TEST_CASE("with find_unused_parameters buckets keep their order, the small one last") {
  const Network network = network_of_tensors(golden_sizes);
  DataParallelOptions options;
  options.find_unused_parameters = true;
  // {2,3,4,5}, {0,1}.
  CHECK(reduced(network, options, 2) == Sizes{24.25, 10.5, 24.25, 10.5});
}

TEST_CASE("a static graph rebuilds after its second step, whatever find_unused_parameters says") {
  const Network network = network_of_tensors(golden_sizes);
  for (const bool find_unused : {false, true}) {
    DataParallelOptions options;
    options.static_graph = true;
    options.find_unused_parameters = find_unused;
    CHECK(reduced(network, options, 3) == Sizes{34.75, 34.75, 4.25, 30, 0.5});
  }
}

TEST_CASE("a bucket cap of one's own holds for the first bucket too, and closes when reached") {
  const Network network = network_of_tensors(golden_sizes);
  const auto with_cap = [&](Bytes cap) {
    DataParallelOptions options;
    options.bucket_cap = cap;
    Sizes sizes = reduced(network, options, 2);
    sizes.erase(sizes.begin());  // the first step has one bucket
    return sizes;
  };
  CHECK(with_cap(Bytes(25 << 20)) == Sizes{34.25, 0.5});
  CHECK(with_cap(Bytes(10 << 20)) == Sizes{14.25, 10, 10, 0.5});
  CHECK(with_cap(Bytes(1)) == Sizes{0.25, 4, 10, 10, 10, 0.5});
  CHECK(with_cap(Bytes(1LL << 40)) == Sizes{34.75});
}

TEST_CASE("a static graph asks once which parameters are used, before it reduces") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  DataParallelOptions options;
  options.static_graph = true;
  options.find_unused_parameters = true;
  const Trained trained = train_simulated(plan, 2, ddp(options), strided(2, 2), 3);
  std::vector<SiteId> calls;
  trained.result.journal->lane(0, 0).for_each([&](const Row& row) {
    if (row.row == RowKind::op && row.kind == OpKind::all_reduce) {
      calls.push_back(row.site);
    }
  });
  const SiteId bucket = site_id("ddp: all_reduce of a bucket");
  CHECK(calls == std::vector<SiteId>{site_id("ddp: all_reduce of the used-parameter map"), bucket,
                                     bucket, bucket});
}

namespace {

// The first layer's parameters after so many steps of ddp on 2 ranks that leave it out.
std::vector<Values> skipped(const TrainingPlan& plan, const DataParallelOptions& options,
                            int64_t steps) {
  const Trained trained =
      train_simulated(plan, 2, ddp(options), strided(2, 4), steps, 1, [](int32_t, int64_t) {
        StepOptions asked;
        asked.skipped_layers = {0};
        return asked;
      });
  REQUIRE_FALSE(trained.result.hung);
  return {trained.parameters[0][0], trained.parameters[0][1]};
}

}  // namespace

TEST_CASE("what no rank uses keeps its None gradient, so that no weight decay touches it") {
  const Network network = small_network(4);
  TrainingPlan plan = exact_plan(network);
  plan.optimizers.front().weight_decay = 1;
  for (const bool views : {false, true}) {
    for (const bool fixed : {false, true}) {
      DataParallelOptions options;
      options.find_unused_parameters = true;
      options.static_graph = fixed;
      options.gradient_as_bucket_view = views;
      CHECK(skipped(plan, options, 3) == skipped(plan, options, 0));
    }
  }
}

TEST_CASE("a static graph that starts to use a parameter raises") {
  const Network network = small_network(4);
  const TrainingPlan plan = exact_plan(network);
  DataParallelOptions options;
  options.static_graph = true;
  const Trained trained =
      train_simulated(plan, 2, ddp(options), strided(2, 2), 2, 1, [](int32_t, int64_t step) {
        StepOptions asked;
        if (step == 0) {
          asked.skipped_layers = {0};
        }
        return asked;
      });
  CHECK(trained.result.ends[0].message.find("static_graph") != std::string::npos);
  CHECK(trained.result.ends[1].message.find("static_graph") != std::string::npos);
}

TEST_CASE("gradients that are views of buckets exist beside them only until they are put in") {
  const Network network = network_of_tensors({4, 4});
  TrainingPlan plan;
  plan.network = &network;
  const auto peak = [&](bool views) {
    DataParallelOptions options;
    options.gradient_as_bucket_view = views;
    const Trained trained = train_simulated(plan, 1, ddp(options), strided(1, 4), 1);
    return trained.result.memory[0].at(DeviceId{0}).peak.count();
  };
  // Parameters 8 MiB, buckets 8, and gradients: 8 at the end of backward, or a layer's 4 at a time.
  // That second peak comes with the last layer, which has the gradients of its output and of its
  // input (4 samples of 4 fp32 each); at the end of backward there is one of them.
  CHECK(peak(false) - peak(true) == (4 << 20) - 4 * 4 * 4);
}

TEST_CASE("ddp's transfers are its batch and its buckets; inside of no_sync only the batch") {
  const Network network = network_of_tensors(golden_sizes);
  TrainingPlan plan;
  plan.network = &network;
  const Trained trained =
      train_simulated(plan, 2, ddp(), strided(2, 4), 4, 1, [](int32_t, int64_t step) {
        StepOptions asked;
        asked.synchronise = step % 2 == 1;
        return asked;
      });
  const std::vector<Transfer> moved = trained.strategies[0]->transfers_per_step();
  REQUIRE(moved.size() == 3);
  CHECK(moved[0].label == "data_to_devices");
  CHECK(moved[0].count == 2);
  CHECK(moved[0].bytes == Bytes(2 * 4 * (4 + 4) * 4));  // 2 batches of 4 samples, in and target
  CHECK(moved[1].label == "gradients_reduced");
  CHECK(moved[1].count == 3);
  CHECK(moved[1].bytes == Bytes(static_cast<int64_t>(34.75 * 1024 * 1024)));
  CHECK(moved[2].label == "counted_by_guides");
  CHECK(moved[2].count == 2);
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

namespace {

// Rank 1 has one batch more than rank 0; both weigh 2 samples.
Batch one_more_on_rank_one(int32_t rank, int64_t step) {
  Batch batch;
  if (step < 1 + rank) {
    batch.samples = {step * 4 + rank, step * 4 + rank + 2};
  }
  return batch;
}

}  // namespace

TEST_CASE("join divides by all ranks, or by those that still have data") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const auto joined = [&](bool by_initial) {
    DataParallelOptions options;
    options.join = true;
    options.divide_by_initial_world_size = by_initial;
    const Trained trained = train_simulated(plan, 2, ddp(options), one_more_on_rank_one, 10);
    REQUIRE_FALSE(trained.result.hung);
    CHECK(trained.parameters[0] == trained.parameters[1]);
    return trained.parameters[0];
  };
  // One device: both batches at once, then rank 1's second one, its loss times `factor`.
  const auto alone = [&](double factor) {
    const Trained trained = train_simulated(
        plan, 1, single(),
        [](int32_t, int64_t step) {
          Batch batch;
          batch.samples = step == 0 ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{5, 7};
          return batch;
        },
        2, 1,
        [factor](int32_t, int64_t step) {
          StepOptions options;
          options.loss_factor = step == 0 ? 1 : factor;
          return options;
        });
    return trained.parameters[0];
  };
  CHECK(joined(false) == alone(1));
  CHECK(joined(true) == alone(0.5));
}

TEST_CASE("throw_on_early_termination ends all ranks once one has no data left") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  DataParallelOptions options;
  options.join = true;
  options.throw_on_early_termination = true;
  const Trained trained = train_simulated(plan, 2, ddp(options), one_more_on_rank_one, 10);
  CHECK_FALSE(trained.result.hung);
  CHECK(trained.result.ends[0].message.find("this rank has no data") != std::string::npos);
  CHECK(trained.result.ends[1].message.find("another rank has no data") != std::string::npos);
}

TEST_CASE("join counts in fp32 and chooses ranks in int64, as torch does") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  DataParallelOptions options;
  options.join = true;
  const Trained trained = train_simulated(plan, 2, ddp(options), one_more_on_rank_one, 10);
  const auto first = [&](std::string_view step) {
    return rows_at(trained.result, 1, step, OpKind::all_reduce).at(0);
  };
  CHECK(first("ddp: join, all_reduce of who still has data").dtype == DType::fp32);
  CHECK(first("ddp: join, all_reduce of who synchronises").dtype == DType::fp32);
  CHECK(first("ddp: join, all_reduce of who joined last").dtype == DType::int64);
}

}  // namespace ddp_test
