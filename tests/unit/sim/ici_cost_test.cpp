#include "sim/ici_cost.hpp"

#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"
#include "sim/build_costs.hpp"
#include "sim/flow_network.hpp"

using namespace lockstep;
using namespace lockstep::literals;
using namespace lockstep::sim;

namespace ici_cost_test {

namespace {

using Edges = std::vector<int64_t>;

InterChipLinks links_of(const char* cluster) { return cluster_preset(cluster)->node.chip_links; }

}  // namespace

// Google Cloud's shapes of v5e (2x4, 4x4, 4x8, 16x16) and of v4 (2x2x1, 2x2x2, 4x4x4, 4x4x8), in
// ascending order.
TEST_CASE("slices have the shapes that Google Cloud has") {
  CHECK(slice_shape(8, 2) == Edges{2, 4});
  CHECK(slice_shape(16, 2) == Edges{4, 4});
  CHECK(slice_shape(32, 2) == Edges{4, 8});
  CHECK(slice_shape(256, 2) == Edges{16, 16});
  CHECK(slice_shape(4, 3) == Edges{1, 2, 2});
  CHECK(slice_shape(8, 3) == Edges{2, 2, 2});
  CHECK(slice_shape(64, 3) == Edges{4, 4, 4});
  CHECK(slice_shape(128, 3) == Edges{4, 4, 8});
  CHECK(slice_shape(12, 2) == Edges{12});
}

// ASTRA-sim's validation takes the eight cores of a v3-8 as one ring of 656 Gb/s in each direction,
// with 1 us for a link: 2 x 7/8 of the data, half of it in each direction.
TEST_CASE("eight cores of a v3-8 are one ring in both directions") {
  const InterChipLinks links = links_of("tpu-v3-8");
  CHECK(links.rate == BytesPerSecond(82'000'000'000));
  const SliceTime time = slice_time(links, OpKind::all_reduce, Bytes(800'000'000), 8);
  CHECK(seconds(time.transfer) == Approx(2 * 7.0 / 8 * 8e8 / (2 * 82e9)));
  CHECK(time.hops == 8_us);
  const SliceTime gather = slice_time(links, OpKind::broadcast, Bytes(800'000'000), 8);
  CHECK(seconds(gather.transfer) == Approx(8e8 / (2 * 82e9)));
}

// 4 x 4 x 4 chips of v4 have a ring in each of three dimensions.
TEST_CASE("every dimension whose ends are joined carries a part") {
  const InterChipLinks links = links_of("tpu-v4-8");
  const SliceTime cube = slice_time(links, OpKind::all_reduce, Bytes(600'000'000), 64);
  CHECK(seconds(cube.transfer) == Approx(2 * 63.0 / 64 * 6e8 / (3 * 2 * 50e9)));
  CHECK(cube.hops == 12_us);
  const SliceTime square = slice_time(links, OpKind::all_reduce, Bytes(600'000'000), 4);
  CHECK(seconds(square.transfer) == Approx(2 * 3.0 / 4 * 6e8 / (2 * 50e9)));
  CHECK(slice_time(links, OpKind::all_reduce, Bytes(600), 1).transfer == Time(0));
}

TEST_CASE("a collective between TPUs takes what the links between chips say, on any node") {
  Cluster cluster = *cluster_preset("tpu-v4-8");
  cluster.nodes = 16;
  CostsResult built =
      build_costs(cluster, {.world_size = 64, .algorithms = CollectiveAlgorithms::xla});
  REQUIRE(built.errors.empty());
  std::vector<int32_t> all(64);
  for (int32_t rank = 0; rank < 64; ++rank) {
    all[static_cast<size_t>(rank)] = rank;
  }
  const CollectiveCall call{OpKind::all_reduce, Bytes(600'000'000), all, 0, 0};
  CommunicationCost& pricing = built.costs.pricing();
  const TransferPlan plan = pricing.collective(call);
  FlowNetwork network(pricing.link_capacities());
  std::vector<FlowNetwork::Forecast> forecasts;
  network.start({}, plan, forecasts);
  CHECK(seconds(plan.latency) == Approx(12e-6).epsilon(1e-3));
  CHECK(seconds(forecasts.at(0).finish) ==
        Approx(2 * 63.0 / 64 * 6e8 / (3 * 2 * 50e9)).epsilon(1e-3));
}

TEST_CASE("chips reach those of another node without its network") {
  Cluster cluster = *cluster_preset("tpu-v5e-8");
  cluster.nodes = 2;
  const Topology topology(cluster);
  for (const LinkId link : topology.route(DeviceNumber{0}, DeviceNumber{15})) {
    CHECK(topology.link(link).kind == LinkKind::ici);
  }
}

}  // namespace ici_cost_test
