#include "model/strategy/data_parallel/horovod/horovod.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "model/strategy/exchange/negotiation/negotiation_sites.hpp"
#include "model/strategy/registry.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace horovod_test {

namespace {

TrainingPlan exact_plan(const Network& network) {
  TrainingPlan plan;
  plan.network = &network;
  plan.numerics = true;
  plan.integer_values = true;
  plan.optimizers.front().lr = 0.125;
  return plan;
}

MakeStrategy horovod_with(HorovodOptions options = {}) {
  return [options](const TrainingPlan& plan) { return std::make_unique<Horovod>(plan, options); };
}
MakeStrategy ddp() {
  return [](const TrainingPlan& plan) {
    return std::make_unique<DistributedDataParallel>(plan, DataParallelOptions());
  };
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

// The all_reduces of data of one rank's background thread, in MiB.
std::vector<double> reduced(const Trained& trained, int32_t rank = 0) {
  std::vector<double> sizes;
  trained.result.journal->lane(rank, 1).for_each([&](const Row& row) {
    const bool is_data = row.site == site_id(negotiation_sites::reduce) ||
                         row.site == site_id(negotiation_sites::reduce_alone);
    if (row.row == RowKind::op && row.kind == OpKind::all_reduce && is_data) {
      sizes.push_back(static_cast<double>(row.bytes) / (1024 * 1024));
    }
  });
  return sizes;
}

double sum_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) {
    sum += number;
  }
  return sum;
}

int64_t calls_at(const Trained& trained, std::string_view step) {
  int64_t calls = 0;
  trained.result.journal->lane(0, 1).for_each([&](const Row& row) {
    calls += row.row == RowKind::op && row.site == site_id(step) ? 1 : 0;
  });
  return calls;
}

bool all_finished(const Trained& trained) {
  return std::ranges::all_of(
      trained.result.ends, [](const RankEnd& end) { return end.kind == RankEnd::Kind::finished; });
}

}  // namespace

TEST_CASE("horovod ends with the parameters of ddp, whoever divides") {
  const Network network = small_network();
  for (const int32_t ranks : {1, 2, 4}) {
    const Trained expected =
        train_simulated(exact_plan(network), ranks, ddp(), strided(ranks, 2), 1);
    for (const bool on_nccl : {false, true}) {
      TrainingPlan plan = exact_plan(network);
      plan.barrier_is_all_reduce = on_nccl;
      const Trained trained = train_simulated(plan, ranks, horovod_with(), strided(ranks, 2), 1);
      REQUIRE(all_finished(trained));
      CHECK(trained.parameters == expected.parameters);
    }
  }
}

TEST_CASE("a predivide factor changes nothing but the order of divisions") {
  const Network network = small_network();
  HorovodOptions options;
  options.predivide_factor = 2;
  const Trained plain = train_simulated(exact_plan(network), 2, horovod_with(), strided(2, 2), 1);
  const Trained divided =
      train_simulated(exact_plan(network), 2, horovod_with(options), strided(2, 2), 1);
  CHECK(divided.parameters == plain.parameters);
}

TEST_CASE("horovod sends every gradient once a step, in calls of at most the threshold") {
  const Network network = network_of_tensors({0.5, 10, 10, 10, 4, 0.25});
  TrainingPlan plan;
  plan.network = &network;
  for (const double threshold : {0.0, 16.0, 128.0}) {
    HorovodOptions options;
    options.fusion_threshold = Bytes(static_cast<int64_t>(threshold * 1024 * 1024));
    const Trained trained = train_simulated(plan, 2, horovod_with(options), strided(2, 4), 3);
    REQUIRE(all_finished(trained));
    const std::vector<double> calls = reduced(trained);
    CHECK(sum_of(calls) == 3 * 34.75);
    for (const double size : calls) {
      CHECK(size <= std::max(threshold, 10.0));
    }
    if (threshold == 0) {
      CHECK(calls.size() == 3 * 6);
    } else {
      CHECK(calls.size() < 3 * 6);
    }
    CHECK(reduced(trained, 1) == calls);
  }
}

TEST_CASE("what ranks have agreed on before is asked for by a bit, the rest through rank 0") {
  const Network network = network_of_tensors({1, 1, 1});
  TrainingPlan plan;
  plan.network = &network;
  const auto lists = [&](int64_t capacity, int64_t steps) {
    HorovodOptions options;
    options.cache_capacity = capacity;
    const Trained trained = train_simulated(plan, 2, horovod_with(options), strided(2, 4), steps);
    REQUIRE(all_finished(trained));
    return calls_at(trained, negotiation_sites::gather_requests);
  };
  CHECK(lists(1024, 5) == lists(1024, 2));  // all names are known after the first step
  CHECK(lists(0, 5) > lists(0, 2));
}

TEST_CASE("a rank without data joins and supplies zeros, and the average is over all") {
  const Network network = small_network();
  TrainingPlan plan = exact_plan(network);
  plan.barrier_is_all_reduce = false;
  const Shard uneven = [](int32_t rank, int64_t step) {
    return step < 2 - rank ? strided(2, 2)(rank, step) : Batch{};
  };
  const Trained trained = train_simulated(plan, 2, horovod_with(), uneven, 2);
  REQUIRE(all_finished(trained));
  // Rank 1 does not step with rank 0, and Horovod makes nothing alike at the end.
  CHECK(trained.parameters[0] != trained.parameters[1]);
  const Trained one_step = train_simulated(plan, 2, horovod_with(), strided(2, 2), 1);
  CHECK(trained.parameters[1] == one_step.parameters[1]);
}

TEST_CASE("every micro-batch sends all gradients, whether by hooks or by synchronize") {
  const Network network = network_of_tensors({1, 2});
  TrainingPlan plan;
  plan.network = &network;
  for (const int64_t passes : {1, 2}) {
    HorovodOptions options;
    options.passes_per_step = passes;
    const Asked every_second = [](int32_t, int64_t step) {
      StepOptions asked;
      asked.synchronise = step % 2 == 1;
      asked.loss_factor = 0.5;
      return asked;
    };
    const Trained trained =
        train_simulated(plan, 2, horovod_with(options), strided(2, 4), 4, 1, every_second);
    REQUIRE(all_finished(trained));
    CHECK(sum_of(reduced(trained)) == 4 * 3);
  }
}

TEST_CASE("half precision halves what travels") {
  const Network network = network_of_tensors({1, 2});
  TrainingPlan plan;
  plan.network = &network;
  HorovodOptions options;
  options.in_half_precision = true;
  const Trained trained = train_simulated(plan, 2, horovod_with(options), strided(2, 4), 2);
  REQUIRE(all_finished(trained));
  CHECK(sum_of(reduced(trained)) == 2 * 1.5);
}

TEST_CASE("a layer that one rank leaves out is a zero there, not a hang") {
  const Network network = small_network(4);
  const Asked uneven = [](int32_t rank, int64_t) {
    StepOptions asked;
    if (rank == 1) {
      asked.skipped_layers = {0};
    }
    return asked;
  };
  const Trained trained =
      train_simulated(exact_plan(network), 2, horovod_with(), strided(2, 2), 2, 1, uneven);
  REQUIRE(all_finished(trained));
  CHECK(trained.parameters[0] == trained.parameters[1]);
}

// DistributedOptimizer is made of the same parameters, and of no state.
TEST_CASE("the wrapped Adam does not count the zero step of broadcast_optimizer_state") {
  const Network network = small_network();
  TrainingPlan plan = exact_plan(network);
  plan.optimizers.front().kind = OptimizerKind::adam;
  const Trained trained = train_simulated(plan, 2, horovod_with(), strided(2, 2), 1);
  REQUIRE(all_finished(trained));
  for (const Replica::Parameter& parameter : trained.strategies[0]->replica().parameters()) {
    CHECK(parameter.tensor.steps == 1);
  }
}

// Gradients are averaged over the two ranks of a set, so two ranks with its samples end alike.
TEST_CASE("each process set trains as the same ranks do by themselves, and a rank of none alone") {
  const Network network = small_network();
  const Shard of_four = strided(4, 2);
  const auto shard_of = [&of_four](std::vector<int32_t> ranks) -> Shard {
    return
        [=](int32_t rank, int64_t step) { return of_four(ranks[static_cast<size_t>(rank)], step); };
  };
  HorovodOptions options;
  options.process_sets = {{0, 2}};
  const Trained trained =
      train_simulated(exact_plan(network), 4, horovod_with(options), of_four, 2);
  REQUIRE(all_finished(trained));
  const Trained set = train_simulated(exact_plan(network), 2, ddp(), shard_of({0, 2}), 2);
  CHECK(trained.parameters[0] == set.parameters[0]);
  CHECK(trained.parameters[2] == set.parameters[0]);
  for (const int32_t rank : {1, 3}) {
    const Trained alone = train_simulated(exact_plan(network), 1, ddp(), shard_of({rank}), 2);
    CHECK(trained.parameters[static_cast<size_t>(rank)] == alone.parameters[0]);
  }
}

TEST_CASE("process sets that Horovod refuses are refused with its words") {
  const Network network = small_network();
  TrainingPlan plan = exact_plan(network);
  plan.world_size = 4;
  const auto message = [&plan](const std::vector<std::string>& sets, int64_t groups = 0) {
    StrategyArguments arguments;
    arguments.set("process_sets", sets);
    arguments.set("num_groups", groups);
    try {
      horovod().make(plan, arguments);
    } catch (const ArgumentProblem& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  using Catch::Matchers::Contains;
  CHECK(message({"[0, 1]", "[2, 3]"}).empty());
  CHECK(message({"[1, 0]"}).empty());
  CHECK_THAT(message({"[0, 1]", "[1, 0]"}), Contains("entry number 1 is a duplicate"));
  CHECK_THAT(message({"[0, 7]"}), Contains("with invalid rank: 7"));
  CHECK_THAT(message({"[-1, 0]"}), Contains("with invalid rank: -1"));
  CHECK_THAT(message({"[0, 0]"}), Contains("with duplicate rank: 0"));
  CHECK_THAT(message({"[0, 1, 2, 3]"}), Contains("the set of all ranks exists already"));
  CHECK_THAT(message({"[]"}), Contains("a set without ranks"));
  CHECK_THAT(message({"[0, 1]", "[1, 2]"}), Contains("rank 1 is in two sets"));
  CHECK_THAT(message({"0"}), Contains("0 is not a list of ranks"));
  CHECK_THAT(message({"[0, x]"}), Contains("is not a list of ranks"));
  CHECK_THAT(message({"[2, 3]"}, 2), Contains("invalid root rank 0"));
  CHECK(message({"[0, 3]"}, 2).empty());
}

}  // namespace horovod_test
