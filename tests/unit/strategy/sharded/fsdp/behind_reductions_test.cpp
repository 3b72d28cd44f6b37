// FSDP1 and FairScale's FSDP divide, cast, add and offload the gradients of a unit behind its own
// reduction, on a stream beside the computation (torch/distributed/fsdp/_runtime_utils.py,
// _reduce_grad; fairscale/nn/data_parallel/fully_sharded_data_parallel.py, _post_reduction_hook).
#include <catch2/catch.hpp>

#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded.hpp"
#include "model/strategy/sharded/fairscale/fully_sharded_sites.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "model/strategy/sharded/fsdp/post_backward.hpp"
#include "tests/unit/strategy/sharded/sharded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace behind_reductions_test {

namespace {

struct Wrapper {
  MakeStrategy make;
  std::string_view site;  ///< of what becomes of a sum
};

Wrapper of_torch(bool offloads) {
  return {[offloads](const TrainingPlan& plan) {
            FullyShardedOptions options;
            options.wrap.classes = {"Cost"};
            options.cpu_offload = offloads;
            return std::make_unique<FullyShardedDataParallel>(plan, options);
          },
          fsdp_sites::take_gradients};
}

Wrapper of_fairscale(bool offloads) {
  return {[offloads](const TrainingPlan& plan) {
            FairScaleShardingOptions options;
            options.wrap.classes = {"Cost"};
            options.bucket_cap_mb = 0;
            options.cpu_offload = offloads;
            return std::make_unique<FairScaleFullySharded>(plan, options);
          },
          fully_sharded_sites::take_gradients};
}

/// Four units of so many MiB of fp32, with 2 ms of backward each.
Network of_units(int64_t mebibytes) {
  NetworkDescription description;
  description.name = "units";
  description.input = {4};
  LayerDescription layer;
  layer.kind = "Cost";
  layer.arguments = {
      {"forward", 1_ms}, {"backward", 2_ms}, {"parameters", mebibytes * 1024 * 1024 / 4}};
  description.layers.assign(4, layer);
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "a network of four units is sound");
  return std::move(built.network);
}

constexpr int32_t ranks = 4;  // divided by 2 before a sum, and by 2 behind it

Trained trained_by(const Wrapper& wrapper, const Network& network) {
  return train_simulated(plan_for(network, false), ranks, wrapper.make, two_samples, 1);
}

Completion completion_of(const Trained& trained, const Row& row) {
  return trained.result.journal->lane(0, 0).completion(row.sequence);
}

/// When the computation of the last backward of a layer has ended.
Time end_of_backward(const Trained& trained) {
  const std::vector<Row> backwards =
      rows_at(trained.result, 0, replica_sites::layer_backward, OpKind::compute);
  REQUIRE_FALSE(backwards.empty());
  return completion_of(trained, backwards.back()).finish;
}

}  // namespace

TEST_CASE("each unit's sum is divided behind its own reduction, beside the backward of others") {
  const Network network = of_units(1);
  for (const Wrapper& wrapper : {of_torch(false), of_fairscale(false)}) {
    CAPTURE(wrapper.site);
    const Trained trained = trained_by(wrapper, network);
    const std::vector<Row> divided = rows_at(trained.result, 0, wrapper.site, OpKind::compute);
    REQUIRE(divided.size() == 4);
    for (const Row& row : divided) {
      CHECK(row.stream == post_backward_stream);
    }
    // A unit is reduced in less than 0.1 ms, and the next one computes for 2 ms.
    CHECK(completion_of(trained, divided[0]).finish < end_of_backward(trained));
    CHECK(completion_of(trained, divided[2]).finish < end_of_backward(trained));
  }
}

TEST_CASE("each unit's gradient is on its way to the host while others are computed") {
  const Network network = of_units(1);
  for (const Wrapper& wrapper : {of_torch(true), of_fairscale(true)}) {
    CAPTURE(wrapper.site);
    const Trained trained = trained_by(wrapper, network);
    const std::vector<Row> copies = rows_at(trained.result, 0, wrapper.site, OpKind::copy);
    REQUIRE(copies.size() == 4);
    CHECK(completion_of(trained, copies[0]).finish < end_of_backward(trained));
    CHECK(completion_of(trained, copies[2]).finish < end_of_backward(trained));
  }
}

// Of 4 units of 4 MiB each of 4 ranks has a part of 1 MiB: all are there when the last backward has
// been reduced (_saved_grad_shard), and none afterwards.
TEST_CASE("parts of offloaded gradients stay on the GPU until the backward has ended") {
  const Network network = of_units(4);
  for (const Wrapper& wrapper : {of_torch(true), of_fairscale(true)}) {
    CAPTURE(wrapper.site);
    const Trained trained = trained_by(wrapper, network);
    std::map<int32_t, int64_t> parts;
    int64_t held = 0;
    int64_t most = 0;
    trained.result.journal->lane(0, 0).for_each([&](const Row& row) {
      constexpr int64_t part = 1024 * 1024;
      const bool is_gradient = row.peer == static_cast<int32_t>(Purpose::gradient);
      if (row.row == RowKind::allocate && is_gradient && row.bytes == part &&
          row.stream.device() == DeviceId{0}) {
        parts[row.tag] = row.bytes;
        most = std::max(most, held += row.bytes);
      } else if (row.row == RowKind::release) {
        held -= parts.contains(row.tag) ? parts[row.tag] : 0;
      }
    });
    CHECK(most == 4 * 1024 * 1024);
    CHECK(held == 0);
  }
}

}  // namespace behind_reductions_test
