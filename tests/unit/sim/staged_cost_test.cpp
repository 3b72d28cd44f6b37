#include "sim/staged_cost.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"
#include "sim/build_costs.hpp"

using namespace lockstep;
using namespace lockstep::sim;

namespace staged_cost_test {

namespace {

Costs costs_of(CollectiveAlgorithms algorithms, bool on_gpus) {
  CostOptions options;
  options.world_size = 8;
  options.algorithms = algorithms;
  options.on_gpus = on_gpus;
  CostsResult built = build_costs(*cluster_preset("dgx-a100"), options);
  REQUIRE(built.errors.empty());
  return std::move(built.costs);
}

constexpr int32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

TEST_CASE("Gloo copies tensors of GPUs to the host and back") {
  const CollectiveCall call{OpKind::all_reduce, Bytes(64'000'000), all, 0, 0};
  Costs on_gpus = costs_of(CollectiveAlgorithms::gloo, true);
  Costs on_cpu = costs_of(CollectiveAlgorithms::gloo, false);
  const TransferPlan staged = on_gpus.pricing().collective(call);
  const TransferPlan plain = on_cpu.pricing().collective(call);
  CHECK(staged.volume == plain.volume);
  // PCIe 4.0 x16: 16 GT/s x 16 lanes x 128/130 are 31.5 GB/s; two hops of 250 ns each way.
  const double copies_s = 2 * (64e6 / 31.507692e9 + 500e-9);
  CHECK(seconds(staged.latency - plain.latency) == Approx(copies_s).epsilon(1e-4));
}

TEST_CASE("Gloo's ring goes over TCP, at 4 GB/s a rank, and not over NVLink") {
  Costs costs = costs_of(CollectiveAlgorithms::gloo, true);
  const CollectiveCall call{OpKind::all_reduce, Bytes(64'000'000), all, 0, 0};
  const TransferPlan plan = costs.pricing().collective(call);
  CHECK(plan.volume == Bytes(112'000'000));  // 2 x 7/8
  BytesPerSecond slowest = BytesPerSecond::max();
  for (const LinkIndex link : *plan.links) {
    slowest = std::min(slowest, costs.pricing().link_capacities()[link]);
  }
  CHECK(slowest == BytesPerSecond(4'000'000'000));
}

TEST_CASE("copies of a program keep to PCIe and NVLink beside Gloo") {
  Costs gloo = costs_of(CollectiveAlgorithms::gloo, true);
  Costs nccl = costs_of(CollectiveAlgorithms::nccl, true);
  for (const DeviceId from : {host_device, DeviceId{0}}) {
    const TransferPlan one = gloo.pricing().copy(3, from, DeviceId{0}, Bytes(1'000'000));
    const TransferPlan other = nccl.pricing().copy(3, from, DeviceId{0}, Bytes(1'000'000));
    CHECK(one.latency == other.latency);
    REQUIRE((one.links == nullptr) == (other.links == nullptr));
    for (size_t place = 0; one.links != nullptr && place < one.links->size(); ++place) {
      CHECK(gloo.pricing().link_capacities()[(*one.links)[place]] ==
            nccl.pricing().link_capacities()[(*other.links)[place]]);
    }
  }
}

}  // namespace staged_cost_test
