// The state_dict of FullyShardedDataParallel: which units are gathered, in which type, and how many
// at a time. torch 2.11.0, torch/distributed/fsdp/_state_dict_utils.py and _unshard_param_utils.py.
#include <catch2/catch.hpp>

#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace fsdp_state_dict_test {

namespace {

constexpr int32_t ranks = 2;
// Larger than what ranks exchange beside tensors.
constexpr int64_t of_block = 64 * 64 + 64;
constexpr int64_t of_rest = 4 * 64 + 64 + 64 * 256 + 256;

// Two blocks, and around them a root that is larger than both.
Network in_large_root() {
  const LayerDescription block{.kind = "Sequential", .layers = {linear(64, 64), {.kind = "ReLU"}}};
  NetworkDescription description;
  description.name = "blocks";
  description.input = {4};
  description.layers = {linear(4, 64), block, block, linear(64, 256)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the network is sound");
  return std::move(built.network);
}

FullyShardedOptions wrapping_blocks() {
  FullyShardedOptions options;
  options.wrap.classes = {"Sequential"};
  return options;
}

using Asked = std::function<Program(Rank&, Strategy&)>;

Program run_asked(Rank& rank, Strategy* strategy, Asked asked) {
  co_await strategy->setup(rank, Stage::fit);
  co_await asked(rank, *strategy);
}

RunResult run(const FullyShardedOptions& options, const Asked& asked) {
  const Network network = in_large_root();
  const TrainingPlan plan = plan_for(network, false);
  std::vector<std::unique_ptr<Strategy>> strategies;
  for (int rank = 0; rank < ranks; ++rank) {
    strategies.push_back(std::make_unique<FullyShardedDataParallel>(plan, options));
  }
  RunOptions run;
  run.world_size = ranks;
  run.network = &network;
  run.journal.lists = true;
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost costs(ranks, BytesPerSecond(50'000'000'000), Time(500'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &costs;
  return sim::simulate(run, simulation, [&](Rank& rank) {
    return run_asked(rank, strategies[static_cast<size_t>(rank.id())].get(), asked);
  });
}

int64_t gathered_elements(const RunResult& result, int32_t rank) {
  const DeviceMemory& memory = result.memory.at(static_cast<size_t>(rank)).at(DeviceId{0});
  return memory.peak_by_purpose[static_cast<size_t>(Purpose::gathered)].count() / 4;
}

/// Of the parts that rank 0 hands in.
std::vector<int64_t> parts_at(const RunResult& result, std::string_view site) {
  std::vector<int64_t> elements;
  for (const Row& row : rows_at(result, 0, site, OpKind::all_gather)) {
    elements.push_back(row.bytes / size_of(row.dtype));
  }
  return elements;
}

Program read_once(Rank& rank, Strategy& strategy) { return strategy.read_state_dict(rank, {}); }

Program save_weights(Rank& rank, Strategy& strategy) {
  CheckpointRequest request;
  request.weights_only = true;
  co_await strategy.save_checkpoint(rank, request, {});
}

// A validation, after which the root stays gathered.
Program read_after_evaluation(Rank& rank, Strategy& strategy) {
  StepOptions evaluation;
  evaluation.training = false;
  co_await strategy.forward(rank, two_samples(rank.id(), 0), evaluation);
  co_await strategy.read_state_dict(rank, {});
  co_await strategy.begin_whole_parameters(rank);
  co_await strategy.end_whole_parameters(rank);
  co_await strategy.forward(rank, two_samples(rank.id(), 1), {});
}

using Parts = std::vector<int64_t>;

}  // namespace

// _full_post_state_dict_hook of the root runs after the state_dicts within it: the root is gathered
// and cloned while all clones of the blocks are there.
TEST_CASE("a state_dict keeps a unit gathered until the units within it have been read") {
  const RunResult result = run(wrapping_blocks(), read_once);
  CHECK(parts_at(result, fsdp_sites::gather_state) ==
        Parts{of_rest / 2, of_block / 2, of_block / 2});
  for (int32_t rank = 0; rank < ranks; ++rank) {
    CHECK(gathered_elements(result, rank) == of_rest + 2 * of_block + of_rest);
  }
}

// FullStateDictConfig(offload_to_cpu=True, rank0_only=True), as Lightning asks: to_cpu on rank 0
// and the early _reshard on others free a unit at once. ShardedStateDictConfig offloads the part
// alone, behind the hook (_sharded_pre_state_dict_hook).
TEST_CASE("a full checkpoint holds one unit on a GPU and a sharded one those around it as well") {
  FullyShardedOptions options = wrapping_blocks();
  const RunResult full = run(options, save_weights);
  options.saves_in_parts = true;
  const RunResult sharded = run(options, save_weights);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    CHECK(gathered_elements(full, rank) == of_rest);
    CHECK(gathered_elements(sharded, rank) == of_rest + of_block);
  }
}

// Recorded with torch 2.11.0 over Gloo, on two ranks: MixedPrecision makes a state_dict and
// summon_full_params force full precision, for which the narrow copy of the root is freed.
TEST_CASE("what a validation leaves gathered serves a state_dict only in the type of the shards") {
  const Parts blocks{of_block / 2, of_block / 2};
  const Parts all{of_rest / 2, of_block / 2, of_block / 2};
  const auto with_more = [](Parts parts, const Parts& more) {
    parts.insert(parts.end(), more.begin(), more.end());
    return parts;
  };
  const RunResult wide = run(wrapping_blocks(), read_after_evaluation);
  CHECK(parts_at(wide, fsdp_sites::gather_state) == blocks);
  CHECK(parts_at(wide, fsdp_sites::summon) == blocks);
  CHECK(parts_at(wide, fsdp_sites::gather_unit) == with_more(all, blocks));
  FullyShardedOptions narrow = wrapping_blocks();
  narrow.param_dtype = DType::bf16;
  const RunResult cast = run(narrow, read_after_evaluation);
  CHECK(parts_at(cast, fsdp_sites::gather_state) == all);
  CHECK(parts_at(cast, fsdp_sites::summon) == all);
  CHECK(parts_at(cast, fsdp_sites::gather_unit) == with_more(all, all));
}

}  // namespace fsdp_state_dict_test
