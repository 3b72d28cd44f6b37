#include "model/strategy/data_parallel/xla/xla.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/data_parallel/single.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace xla_test {

namespace {

constexpr std::string_view reduce_step = "xla: all_reduce of all gradients";

TrainingPlan exact_plan(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizers.front().lr = 0.125;
  return plan;
}

MakeStrategy xla_with(XlaOptions options = {}) {
  return [options](const TrainingPlan& plan) {
    return std::make_unique<XlaDataParallel>(plan, options);
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

// Every second step ends a window of two batches.
StepOptions every_second(int32_t, int64_t step) {
  StepOptions asked;
  asked.synchronise = step % 2 == 1;
  asked.loss_factor = 0.5;
  return asked;
}

using Sizes = std::vector<double>;

Sizes reduced(const TrainingPlan& plan, int32_t ranks, int64_t steps, const Asked& asked = {}) {
  const Trained trained =
      train_simulated(plan, ranks, xla_with(), strided(ranks, 4), steps, 1, asked);
  REQUIRE_FALSE(trained.result.hung);
  return mebibytes_at(trained.result, reduce_step, OpKind::all_reduce);
}

}  // namespace

// torch_xla/core/xla_model.py, reduce_gradients: one all_reduce of the list of all gradients.
TEST_CASE("xla sums all gradients of a step by one call") {
  const Network network = network_of_tensors({0.5, 10, 4});
  TrainingPlan plan;
  plan.network = &network;
  CHECK(reduced(plan, 2, 3) == Sizes{14.5, 14.5, 14.5});
  CHECK(reduced(plan, 1, 3).empty());
}

TEST_CASE("xla sends nothing while it accumulates") {
  const Network network = network_of_tensors({0.5, 10});
  TrainingPlan plan;
  plan.network = &network;
  CHECK(reduced(plan, 2, 4, every_second) == Sizes{10.5, 10.5});
}

TEST_CASE("xla trains as one device does on the samples of all replicas") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  for (const int32_t ranks : {2, 4}) {
    const Trained together = train_simulated(plan, ranks, xla_with(), strided(ranks, 8 / ranks), 1);
    const Trained alone = train_simulated(plan, 1, single(), strided(1, 8), 1);
    for (const std::vector<Values>& parameters : together.parameters) {
      CHECK(parameters == alone.parameters[0]);
    }
  }
}

TEST_CASE("xla accumulates as one device does") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  const Trained together = train_simulated(plan, 2, xla_with(), strided(2, 4), 2, 1, every_second);
  const Trained alone = train_simulated(plan, 1, single(), strided(1, 8), 2, 1, every_second);
  CHECK(together.parameters[0] == alone.parameters[0]);
  CHECK(together.parameters[1] == alone.parameters[0]);
}

// 4 - 6 - 2: 4 x 6 + 6 + 6 x 2 + 2 = 44 parameters of 4 bytes.
TEST_CASE("sync_module_states is one all_reduce of the module's state") {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  constexpr std::string_view step = "xla: all_reduce that broadcasts parameters";
  const Trained sends = train_simulated(plan, 2, xla_with(), strided(2, 4), 1);
  const std::vector<Row> rows = rows_at(sends.result, 1, step, OpKind::all_reduce);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].bytes == 176);
  const Trained silent =
      train_simulated(plan, 2, xla_with({.sync_module_states = false}), strided(2, 4), 1);
  CHECK(rows_at(silent.result, 1, step, OpKind::all_reduce).empty());
  CHECK(silent.parameters[0] == sends.parameters[0]);
}

// Parameters and gradients of 8 MiB each, and a layer's 4 MiB while they are added.
TEST_CASE("gradients that are summed by one call have no copy") {
  const Network network = network_of_tensors({4, 4});
  TrainingPlan plan;
  plan.network = &network;
  const Trained trained =
      train_simulated(plan, 2, xla_with({.sync_module_states = false}), strided(2, 4), 1);
  const int64_t peak = trained.result.memory[0].at(DeviceId{0}).peak.count();
  CHECK(peak >= 20 * 1024 * 1024);
  CHECK(peak < 20 * 1024 * 1024 + 4096);
}

TEST_CASE("a graph is compiled for each size, window place and state") {
  GraphCache cache;
  const auto step = [&cache](int64_t samples, bool adds, bool updates, bool makes_state) {
    cache.begin_batch();
    cache.record_forward(true, samples);
    cache.record_backward(adds);
    if (updates) {
      cache.record_update(makes_state);
    }
  };
  step(8, false, true, true);  // the optimizer's state begins
  step(8, false, true, false);
  step(8, false, true, false);
  CHECK(cache.graphs().size() == 2);
  step(2, false, true, false);  // the last batch is short
  step(2, false, true, false);
  CHECK(cache.graphs().size() == 3);
  step(8, false, false, false);  // a window of two
  step(8, true, true, false);
  step(8, false, false, false);
  step(8, true, true, false);
  CHECK(cache.graphs().size() == 5);
  cache.begin_batch();
  cache.record_forward(false, 8);
  CHECK(cache.graphs().size() == 6);
  CHECK_FALSE(cache.graphs().back().training);
}

// SGD keeps nothing, Adam makes its moments in the first update.
TEST_CASE("an optimizer with state compiles its first update apart") {
  const Network network = small_network();
  TrainingPlan plan = exact_plan(network);
  const auto graphs = [&plan] {
    const Trained trained = train_simulated(plan, 2, xla_with(), strided(2, 4), 3);
    return trained.strategies[1]->compiled_graphs();
  };
  CHECK(graphs().size() == 1);
  plan.optimizers.front().momentum = 0.5;
  CHECK(graphs().size() == 2);
}

namespace {

Program reduce_own_number(Rank& rank, Strategy* strategy, Reduction how, double* result) {
  const Slice data = rank.allocate(Purpose::metric, DType::fp32, 1);
  rank.write(data, Values::of(DType::fp32, {rank.id() + 1.0}));
  co_await strategy->reduce(rank, data, how, no_site);
  *result = rank.read(data).number(0);
}

/// What ranks 0 and 1 make of 1 and 2, and how rank 0 ends.
std::pair<double, std::string> reduced_by(Reduction how) {
  const Network network = small_network();
  const TrainingPlan plan = exact_plan(network);
  RunOptions options;
  options.world_size = 2;
  options.numerics = true;
  options.network = plan.network;
  options.average_order = AverageOrder::sum_then_divide;
  sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network_cost(2, BytesPerSecond(1'000'000'000), Time(1000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network_cost;
  XlaDataParallel first(plan, {});
  XlaDataParallel second(plan, {});
  double results[2] = {};
  const RunResult result = sim::simulate(options, simulation, [&](Rank& rank) {
    return reduce_own_number(rank, rank.id() == 0 ? &first : &second, how, &results[rank.id()]);
  });
  return {results[0], result.ends[0].message};
}

}  // namespace

TEST_CASE("the reduce of xla takes sums and means alone") {
  CHECK(reduced_by(Reduction::sum).first == 3);
  CHECK(reduced_by(Reduction::avg).first == 1.5);
  CHECK(reduced_by(Reduction::max).second.find("only supports `sum`, `mean`, `avg`") !=
        std::string::npos);
}

}  // namespace xla_test
