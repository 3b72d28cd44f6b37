// FairScale's own FSDP over the simulator: what the bucket collects, and that it trains as ddp
// does.
#include "model/strategy/sharded/fairscale/fully_sharded.hpp"

#include <catch2/catch.hpp>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded_sites.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace fully_sharded_test {

namespace {

MakeStrategy fully_sharded(const FairScaleShardingOptions& options) {
  return [options](const TrainingPlan& plan) {
    return std::make_unique<FairScaleFullySharded>(plan, options);
  };
}

/// Bytes of the bucket over four ranks, whose parts have so many elements of fp32.
double megabytes_of_part(int64_t elements) {
  return static_cast<double>(4 * 4 * elements) / (1024 * 1024);
}

FairScaleShardingOptions with_part_of(int64_t elements) {
  FairScaleShardingOptions options;
  options.wrap.classes = {"Sequential"};
  options.bucket_cap_mb = megabytes_of_part(elements);
  return options;
}

/// Elements that each reduce_scatter of a step has, for all ranks together.
std::vector<int64_t> reduced_elements(const FairScaleShardingOptions& options,
                                      std::string_view site) {
  const Network network = with_block();
  const Trained trained =
      train_simulated(plan_for(network, false), 4, fully_sharded(options), two_samples, 1);
  std::vector<int64_t> elements;
  for (const Row& row : rows_at(trained.result, 0, site, OpKind::reduce_scatter)) {
    elements.push_back(row.bytes / 4);
  }
  return elements;
}

StrategyArguments with(const std::string& name, const StrategyArguments::Value& value) {
  StrategyArguments arguments;
  arguments.set(name, value);
  return arguments;
}

/// Whether the strategy that these arguments make leaves out exchanges while it accumulates.
bool make(const StrategyArguments& arguments, DType activation = DType::fp32) {
  const Network network = small_network();
  TrainingPlan plan;
  plan.network = &network;
  plan.activation_dtype = activation;
  return fairscale_fully_sharded().make(plan, arguments)->accumulates_without_exchange();
}

using Elements = std::vector<int64_t>;

Program set_up_and_read(Rank& rank, Strategy* strategy) {
  co_await strategy->setup(rank, Stage::fit);
  co_await strategy->read_state_dict(rank, {});
}

/// At most at a time, of whole parameters on the first device.
int64_t elements_for_state_dict(const FairScaleShardingOptions& options) {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, false);
  std::vector<std::unique_ptr<Strategy>> strategies;
  for (int rank = 0; rank < 4; ++rank) {
    strategies.push_back(std::make_unique<FairScaleFullySharded>(plan, options));
  }
  RunOptions run;
  run.world_size = 4;
  run.network = &network;
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost costs(4, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &costs;
  const RunResult result = sim::simulate(run, simulation, [&](Rank& rank) {
    return set_up_and_read(rank, strategies[static_cast<size_t>(rank.id())].get());
  });
  const DeviceMemory& memory = result.memory.at(0).at(DeviceId{0});
  return memory.peak_by_purpose[static_cast<size_t>(Purpose::gathered)].count() / 4;
}

}  // namespace

TEST_CASE("ddp_fully_sharded trains to the weights of ddp where nothing is rounded") {
  const Network network = with_block();
  const TrainingPlan plan = plan_for(network, true);
  const Trained expected = train_simulated(plan, 4, ddp(), two_samples, 2);
  for (const int64_t part : {0, 17, 35, 36, 1000}) {
    for (const bool reshards : {true, false}) {
      for (const bool offloads : {true, false}) {
        FairScaleShardingOptions options = with_part_of(part);
        options.reshard_after_forward = reshards;
        options.cpu_offload = offloads;
        const Trained trained = train_simulated(plan, 4, fully_sharded(options), two_samples, 2);
        INFO("part " << part << " reshards " << reshards << " offloads " << offloads);
        CHECK(whole_parameters(trained, network) == whole_parameters(expected, network));
      }
    }
  }
}

// Over four ranks the blocks (72 elements) have shards of 18, the rest (58, padded to 60) of 15.
// The second block comes first, then the first one, and the rest last.
TEST_CASE("the bucket of ddp_fully_sharded is reduced when a unit finds no room, and at the end") {
  using namespace fully_sharded_sites;
  CHECK(reduced_elements(with_part_of(1000), reduce_bucket) == Elements{72 + 72 + 60});
  CHECK(reduced_elements(with_part_of(36), reduce_bucket) == Elements{72 + 72, 60});
  CHECK(reduced_elements(with_part_of(35), reduce_bucket) == Elements{72, 72 + 60});
}

TEST_CASE("ddp_fully_sharded reduces a unit by itself where its shard is larger than the bucket") {
  using namespace fully_sharded_sites;
  CHECK(reduced_elements(with_part_of(17), reduce_unit) == Elements{72, 72});
  CHECK(reduced_elements(with_part_of(17), reduce_bucket) == Elements{60});
  CHECK(reduced_elements(with_part_of(0), reduce_unit) == Elements{72, 72, 60});
  CHECK(reduced_elements(with_part_of(0), reduce_bucket).empty());
}

// The bucket holds 25 MiB for a backward, and a fourth of it for the sums of this rank.
TEST_CASE("the bucket of ddp_fully_sharded takes its whole size in memory") {
  const Network network = with_block();
  FairScaleShardingOptions bucket;
  FairScaleShardingOptions none;
  none.bucket_cap_mb = 0;
  const auto peak_of = [&](const FairScaleShardingOptions& options) {
    const Trained trained =
        train_simulated(plan_for(network, false), 4, fully_sharded(options), two_samples, 1);
    return trained.result.memory.at(0).at(DeviceId{0}).peak.count();
  };
  const int64_t mebibyte = 1024 * 1024;
  const int64_t more = peak_of(bucket) - peak_of(none);
  CHECK(more >= 31 * mebibyte);
  CHECK(more <= 32 * mebibyte);
}

TEST_CASE("gradients of ddp_fully_sharded travel in the type that mixed precision asks for") {
  const Network network = with_block();
  TrainingPlan plan = plan_for(network, false);
  plan.activation_dtype = DType::fp16;
  for (const bool wide : {false, true}) {
    FairScaleShardingOptions options = with_part_of(1000);
    options.compute_dtype = DType::fp16;
    options.fp32_reduce_scatter = wide;
    const Trained trained = train_simulated(plan, 4, fully_sharded(options), two_samples, 1);
    const auto reduced =
        rows_at(trained.result, 0, fully_sharded_sites::reduce_bucket, OpKind::reduce_scatter);
    REQUIRE(reduced.size() == 1);
    CHECK(reduced.front().dtype == (wide ? DType::fp32 : DType::fp16));
    const auto gathered =
        rows_at(trained.result, 0, fully_sharded_sites::gather_unit, OpKind::all_gather);
    REQUIRE(gathered.size() == 5);
    CHECK(gathered.front().dtype == DType::fp16);
  }
}

TEST_CASE("Lightning accumulates under no_sync where it wraps the model itself") {
  CHECK(make({}));
  CHECK_FALSE(make(with("auto_wrap_policy", std::vector<std::string>{"Linear"})));
  CHECK_FALSE(make(with("min_num_params", int64_t{10})));
}

TEST_CASE("arguments of DDPFullyShardedStrategy need the precision that FairScale demands") {
  CHECK_THROWS_AS(make(with("fp32_reduce_scatter", true)), std::invalid_argument);
  CHECK_THROWS_AS(make(with("compute_dtype", std::string("fp16"))), std::invalid_argument);
  CHECK_NOTHROW(make(with("fp32_reduce_scatter", true), DType::fp16));
  CHECK_NOTHROW(make(with("compute_dtype", std::string("torch.float32")), DType::fp16));
  CHECK_THROWS_AS(make(with("min_num_params", int64_t{0})), std::invalid_argument);
}

// fairscale 0.4.13, fully_sharded_data_parallel.py: state_dict summons a unit (58 elements of the
// rest are padded to 60), and within it come the state_dicts of the blocks (72), before
// _post_state_dict_hook moves what it has to state_dict_device, or clones it where that is the GPU.
TEST_CASE("a state_dict of ddp_fully_sharded on the GPU keeps a clone of every tensor") {
  FairScaleShardingOptions options = with_part_of(1000);
  CHECK(elements_for_state_dict(options) == 60 + 72);
  options.state_dict_to_cpu = false;
  CHECK(elements_for_state_dict(options) == 60 + 72 + 72 + 72);
}

TEST_CASE("what DDPFullyShardedStrategy has and is not modelled is refused as such") {
  CHECK_THROWS_AS(make(with("flatten_parameters", false)), UnmodelledArgument);
  CHECK_THROWS_AS(make(with("move_grads_to_cpu", true)), UnmodelledArgument);
  CHECK_NOTHROW(make(with("state_dict_to_cpu", false)));
  CHECK_NOTHROW(make(with("move_grads_to_cpu", false)));
}

}  // namespace fully_sharded_test
