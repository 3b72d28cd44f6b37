// What each rank sends in a step, in multiples of the parameters, as published: 2 for the
// all_reduce of data parallelism and for ZeRO 1 and 2 where every gradient goes to its owner alone,
// 3 for ZeRO 3 (Rajbhandari et al., SC 2020, section 7); for HYBRID_SHARD within and across
// replicas (Zhao et al., PVLDB 16, 2023, section 3.2.2), and hpZ within a node (Wang et al.,
// ZeRO++, 2023, section 3.2). These count n elements where a ring of W ranks sends (W - 1) / W n in
// a reduce_scatter, an all_gather, or, on average over its ranks, a reduce or broadcast along it.
#include <catch2/catch.hpp>
#include <map>

#include "model/strategy/sharded/deepspeed/deepspeed.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"
#include "model/strategy/sharded/fairscale/fairscale.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp2.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace volumes_test {

namespace {

constexpr int32_t ranks = 8;
constexpr int64_t layers = 16;
constexpr int64_t of_layer = 4096;

/// Sixteen modules of one tensor each: whatever is cut or padded comes out even.
Network even_layers() {
  NetworkDescription description;
  description.name = "even";
  description.input = {4};
  for (int64_t i = 0; i < layers; ++i) {
    description.layers.push_back(
        {.kind = "Cost",
         .arguments = {
             {"forward", Time(1000)}, {"backward", Time(2000)}, {"parameters", of_layer}}});
  }
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return std::move(built.network);
}

/// By the number of ranks in a group.
using Sent = std::map<size_t, double>;

double sent_of_ring(const Row& row, double members) {
  const auto elements = static_cast<double>(row.bytes / size_of(row.dtype));
  switch (row.kind) {
    case OpKind::all_reduce: return 2 * (members - 1) / members * elements;
    case OpKind::reduce_scatter:
    case OpKind::reduce:
    case OpKind::broadcast: return (members - 1) / members * elements;
    case OpKind::all_gather:  // the row has this rank's part
      return (members - 1) * elements;
    default: return 0;
  }
}

/// Of rank 0 in the whole run, in multiples of all parameters. Norms and traces are no parameters.
Sent sent_in(const Trained& run) {
  Sent sent;
  run.result.journal->lane(0, 0).for_each([&](const Row& row) {
    const bool is_of_parameters =
        row.row == RowKind::op && row.dtype == DType::fp32 && row.bytes >= 4 * of_layer / ranks;
    if (!is_of_parameters) {
      return;
    }
    const size_t members = row.group == world_group
                               ? static_cast<size_t>(ranks)
                               : run.result.journal->groups[0].at(row.group.value).members.size();
    const double elements = sent_of_ring(row, static_cast<double>(members));
    if (elements > 0) {
      sent[members] += elements / (layers * of_layer);
    }
  });
  return sent;
}

/// The third step: engines broadcast at their start, and record in the first.
Sent sent_in_a_step(const MakeStrategy& make,
                    OptimizerPlan::Sharding sharding = OptimizerPlan::Sharding::none) {
  const Network network = even_layers();
  TrainingPlan plan = plan_for(network, false);
  plan.optimizers.front().sharding = sharding;
  const auto run = [&](int64_t steps) {
    return sent_in(train_simulated(plan, ranks, make, two_samples, steps));
  };
  Sent sent = run(3);
  for (const auto& [members, before] : run(2)) {
    sent[members] -= before;
  }
  std::erase_if(sent, [](const auto& of_group) { return of_group.second == 0; });
  return sent;
}

MakeStrategy made_by(const StrategyEntry& entry, const StrategyArguments& arguments) {
  return [make = entry.make, arguments](const TrainingPlan& plan) { return make(plan, arguments); };
}

MakeStrategy deepspeed_of(int64_t stage, const StrategyArguments& more = {}) {
  const std::string zero = "config.zero_optimization.";
  StrategyArguments arguments = more;
  arguments.set(zero + "stage", stage);
  arguments.set("config.zero_allow_untested_optimizer", true);
  arguments.set(zero + "stage3_prefetch_bucket_size", int64_t{0});
  arguments.set(zero + "stage3_max_reuse_distance", int64_t{0});
  arguments.set(zero + "stage3_param_persistence_threshold", int64_t{0});
  return made_by(deepspeed(), arguments);
}

StrategyArguments with(const std::string& name, const StrategyArguments::Value& value) {
  StrategyArguments arguments;
  arguments.set(name, value);
  return arguments;
}

using Sharding = FullyShardedOptions::Sharding;

MakeStrategy fsdp_of(Sharding sharding, bool wraps = true, int32_t shard_ranks = 0) {
  FullyShardedOptions options;
  options.sharding = sharding;
  options.shard_ranks = shard_ranks;
  if (wraps) {
    options.wrap.classes = {"Cost"};
  }
  return [options](const TrainingPlan& plan) {
    return std::make_unique<FullyShardedDataParallel>(plan, options);
  };
}

MakeStrategy fsdp2_of(std::optional<bool> reshards, int32_t reshard_to = 0,
                      int32_t shard_ranks = 0) {
  FullyShard2Options options;
  options.wrap.classes = {"Cost"};
  options.reshard_after_forward = reshards;
  options.reshard_to = reshard_to;
  options.shard_ranks = shard_ranks;
  return
      [options](const TrainingPlan& plan) { return std::make_unique<FullyShard2>(plan, options); };
}

}  // namespace

// 2 x 7/8: reduced and gathered, whether by one call or by owners.
TEST_CASE("data parallelism and ZeRO 1 and 2 send twice the parameters") {
  const Sent twice{{8, 2 * 7.0 / 8}};
  CHECK(sent_in_a_step(ddp()) == twice);
  for (const int64_t stage : {1, 2}) {
    INFO("stage " << stage);
    CHECK(sent_in_a_step(deepspeed_of(
              stage, with("config.zero_optimization.use_multi_rank_bucket_allreduce", false))) ==
          twice);
  }
  CHECK(sent_in_a_step([](const TrainingPlan& plan) {
          return std::make_unique<ShardedDataParallel>(plan, ShardedDataParallelOptions());
        }) == twice);
}

// What is not the published algorithm: all ranks have all sums before they keep their part.
TEST_CASE("an all_reduce of gradients beside divided optimizers sends three times") {
  const Sent thrice{{8, 3 * 7.0 / 8}};
  CHECK(sent_in_a_step(deepspeed_of(1)) == thrice);
  CHECK(sent_in_a_step(deepspeed_of(2)) == thrice);
  for (const auto sharding : {OptimizerPlan::Sharding::zero_redundancy,
                              OptimizerPlan::Sharding::zero_redundancy_in_buckets}) {
    CHECK(sent_in_a_step(ddp(), sharding) == thrice);
  }
}

// Gathered for the forward, gathered for the backward, reduced: 1.5 times data parallelism.
TEST_CASE("ZeRO 3 and FULL_SHARD send three times the parameters") {
  const Sent thrice{{8, 3 * 7.0 / 8}};
  CHECK(sent_in_a_step(deepspeed_of(3)) == thrice);
  CHECK(sent_in_a_step(fsdp_of(Sharding::full)) == thrice);
  CHECK(sent_in_a_step(fsdp2_of({})) == thrice);
  CHECK(sent_in_a_step(made_by(fairscale_fully_sharded(),
                               with("auto_wrap_policy", std::vector<std::string>{"Cost"}))) ==
        thrice);
}

// Gathered once: also the outermost unit, which FULL_SHARD does not free after its forward.
TEST_CASE("SHARD_GRAD_OP and a model of one unit send twice the parameters") {
  const Sent twice{{8, 2 * 7.0 / 8}};
  CHECK(sent_in_a_step(fsdp_of(Sharding::grad_op)) == twice);
  CHECK(sent_in_a_step(fsdp_of(Sharding::full, false)) == twice);
  CHECK(sent_in_a_step(fsdp_of(Sharding::none)) == twice);
  CHECK(sent_in_a_step(fsdp2_of(false)) == twice);
  StrategyArguments kept = with("auto_wrap_policy", std::vector<std::string>{"Cost"});
  kept.set("reshard_after_forward", false);
  CHECK(sent_in_a_step(made_by(fairscale_fully_sharded(), kept)) == twice);
}

// 4 ranks shard and 2 replicas reduce: within a replica 3 (or 2) x 3/4, across replicas an
// all_reduce of each rank's fourth, 2 x 1/2 x 1/4.
TEST_CASE("HYBRID_SHARD sends the parameters within replicas and a part of them across") {
  const double across = 2 * (1.0 / 2) / 4;
  const Sent full{{4, 3 * 3.0 / 4}, {2, across}};
  const Sent once{{4, 2 * 3.0 / 4}, {2, across}};
  CHECK(sent_in_a_step(fsdp_of(Sharding::hybrid, true, 4)) == full);
  CHECK(sent_in_a_step(fsdp_of(Sharding::hybrid_grad_op, true, 4)) == once);
  CHECK(sent_in_a_step(fsdp2_of({}, 0, 4)) == full);
  CHECK(sent_in_a_step(fsdp2_of(false, 0, 4)) == once);
}

// All ranks gather for the forward and reduce, 2 x 7/8; the four of a node gather for the backward,
// 3/4, out of second parts.
TEST_CASE("hpZ and a number for reshard_after_forward gather for the backward within a node") {
  const Sent within{{8, 2 * 7.0 / 8}, {4, 3.0 / 4}};
  CHECK(sent_in_a_step(deepspeed_of(
            3, with("config.zero_optimization.zero_hpz_partition_size", int64_t{4}))) == within);
  CHECK(sent_in_a_step(fsdp2_of({}, 4)) == within);
}

}  // namespace volumes_test
