#include "sim/nccl_cost.hpp"

#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"
#include "sim/build_costs.hpp"
#include "sim/flow_network.hpp"

using namespace lockstep;
using namespace lockstep::literals;
using namespace lockstep::sim;

namespace nccl_cost_test {

namespace {

constexpr int32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
const CollectiveCall large{OpKind::all_reduce, 1_GiB, all, 0, 0};

Costs eight_a100() {
  CostsResult built = build_costs(*cluster_preset("dgx-a100"), {.world_size = 8});
  REQUIRE(built.errors.empty());
  REQUIRE(built.costs.nccl != nullptr);
  return std::move(built.costs);
}

CollectivePrice priced(Bytes bytes) {
  return NcclPricing({*cluster_preset("dgx-a100"), {8, 1}}).price(OpKind::all_reduce, bytes);
}

double transfer_s(CommunicationCost& cost, const TransferPlan& plan) {
  FlowNetwork network(cost.link_capacities());
  std::vector<FlowNetwork::Forecast> forecasts;
  network.start({}, plan, forecasts);
  return seconds(forecasts.at(0).finish);
}

}  // namespace

TEST_CASE("a collective alone takes what NCCL's pricing says") {
  Costs costs = eight_a100();
  const TransferPlan plan = costs.pricing().collective(large);
  const CollectivePrice price = priced(1_GiB);
  CHECK(seconds(plan.latency) * 1e6 == Approx(price.fixed_us).epsilon(1e-4));
  CHECK(transfer_s(costs.pricing(), plan) * 1e6 == Approx(price.transfer_us).epsilon(1e-4));
  // The same call again, from memory.
  const TransferPlan again = costs.pricing().collective(large);
  CHECK(again.latency == plan.latency);
  CHECK(again.volume == plan.volume);
}

TEST_CASE("two collectives of NCCL on the same links take twice as long") {
  Costs costs = eight_a100();
  FlowNetwork network(costs.pricing().link_capacities());
  std::vector<FlowNetwork::Forecast> forecasts;
  const TransferPlan plan = costs.pricing().collective(large);
  const CollectiveCall other{OpKind::all_reduce, 1_GiB, all, 1, 0};
  network.start({}, plan, forecasts);
  network.start({}, costs.pricing().collective(other), forecasts);
  CHECK(seconds(forecasts.back().finish) * 1e6 ==
        Approx(2 * priced(1_GiB).transfer_us).epsilon(1e-4));
}

TEST_CASE("a fault's latency is added to what NCCL takes, and goes away with it") {
  Costs costs = eight_a100();
  const TransferPlan healthy = costs.pricing().collective(large);
  const LinkIndex link = healthy.links->front();
  costs.pricing().add_latency(link, 10_us);
  // Eight hops around the ring: 14 steps cross the link once or twice, at most twice.
  const Time slower = costs.pricing().collective(large).latency - healthy.latency;
  CHECK(slower == 20_us);
  costs.pricing().add_latency(link, Time{} - 10_us);
  CHECK(costs.pricing().collective(large).latency == healthy.latency);
}

TEST_CASE("variables of NCCL change what the simulation takes") {
  CostOptions options{.world_size = 8};
  options.nccl.settings = read_nccl_settings({{"NCCL_MAX_CTAS", "6"}}).settings;
  Costs limited = std::move(build_costs(*cluster_preset("dgx-a100"), options).costs);
  const TransferPlan plan = limited.pricing().collective(large);
  CHECK(transfer_s(limited.pricing(), plan) * 1e6 ==
        Approx(4 * priced(1_GiB).transfer_us).epsilon(1e-4));
}

TEST_CASE("ranks without GPUs are priced by their links alone") {
  CHECK(build_costs(*cluster_preset("cpu"), {.world_size = 8}).costs.nccl == nullptr);
}

}  // namespace nccl_cost_test
