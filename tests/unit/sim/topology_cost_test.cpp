#include "sim/topology_cost.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "model/cluster/presets.hpp"
#include "sim/build_costs.hpp"
#include "sim/flow_network.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace topology_cost_test {
using sim::CollectiveAlgorithms;

namespace {

constexpr auto ring = CollectiveAlgorithms::ring;
constexpr auto tree = CollectiveAlgorithms::tree;
constexpr auto gloo = CollectiveAlgorithms::gloo;

/// A cluster's communication, each call priced as if it were alone.
class Priced {
 public:
  Priced(const char* preset, int nodes, int32_t ranks, CollectiveAlgorithms algorithms)
      : Priced(cluster(preset, nodes), ranks, algorithms) {}
  Priced(const Cluster& cluster, int32_t ranks, CollectiveAlgorithms algorithms) {
    costs_ = sim::build_costs(cluster, {.world_size = ranks, .algorithms = algorithms}).costs;
    members_.resize(static_cast<size_t>(ranks));
    std::iota(members_.begin(), members_.end(), 0);
  }
  static Cluster cluster(const char* preset, int nodes) {
    Cluster found = *cluster_preset(preset);
    found.nodes = nodes;
    return found;
  }

  sim::TransferPlan plan(OpKind kind, Bytes bytes, int32_t root = 0) {
    return costs_.communication->collective({kind, bytes, members_, 0, root});
  }
  Time latency(OpKind kind, int32_t root = 0) { return plan(kind, 1_B, root).latency; }
  /// Without latency.
  double transfer_s(const sim::TransferPlan& plan) {
    sim::FlowNetwork network(costs_.communication->link_capacities());
    std::vector<sim::FlowNetwork::Forecast> forecasts;
    network.start({}, plan, forecasts);
    return seconds(forecasts.at(0).finish);
  }
  double transfer_s(OpKind kind, Bytes bytes, int32_t root = 0) {
    return transfer_s(plan(kind, bytes, root));
  }
  sim::TopologyCommunicationCost& cost() { return *costs_.communication; }
  void set_members(std::vector<int32_t> members) { members_ = std::move(members); }

 private:
  sim::Costs costs_;
  std::vector<int32_t> members_;
};

const double bytes_1_gib = 1'073'741'824;

}  // namespace

TEST_CASE("a ring all_reduce over the 8 GPUs of a DGX A100 runs at NVLink speed") {
  Priced dgx("dgx-a100", 1, 8, ring);
  // 2 * 7/8 of the bytes at 300 GB/s; 14 steps over two NVLink latencies of 350 ns.
  CHECK(dgx.transfer_s(OpKind::all_reduce, 1_GiB) ==
        Approx(2.0 * 7 / 8 * bytes_1_gib / 300e9).epsilon(1e-9));
  CHECK(dgx.latency(OpKind::all_reduce) == 14 * 700_ns);
  CHECK(dgx.transfer_s(OpKind::reduce_scatter, 1_GiB) ==
        Approx(7.0 / 8 * bytes_1_gib / 300e9).epsilon(1e-9));
  CHECK(dgx.latency(OpKind::reduce_scatter) == 7 * 700_ns);
  CHECK(dgx.transfer_s(OpKind::all_gather, 1_GiB) == Approx(7 * bytes_1_gib / 300e9).epsilon(1e-9));
  CHECK(dgx.transfer_s(OpKind::broadcast, 1_GiB) == Approx(bytes_1_gib / 300e9).epsilon(1e-9));
}

TEST_CASE("a ring over 4 x 8 GPUs runs at the speed of all NICs of a node") {
  Priced dgx("dgx-a100", 4, 32, ring);
  // Eight channels: each NIC (25 GB/s) carries an eighth, each NVLink seven eighths (300 GB/s).
  CHECK(dgx.transfer_s(OpKind::all_reduce, 1_GiB) ==
        Approx(2.0 * 31 / 32 * bytes_1_gib / 200e9).epsilon(1e-9));
  // 62 hops. Once around: 28 hops of 700 ns and 4 between nodes: two PCIe links of 250 ns on both
  // sides and 1500 ns of network. Twice around less the two cheapest neighbours.
  CHECK(dgx.latency(OpKind::all_reduce) == 2 * (28 * 700_ns + 4 * 2500_ns) - 2 * 700_ns);
}

TEST_CASE("a ring with one member per node uses one NIC of each") {
  Priced dgx("dgx-a100", 4, 32, ring);
  dgx.set_members({3, 11, 19, 27});
  CHECK(dgx.transfer_s(OpKind::all_reduce, 1_GiB) ==
        Approx(2.0 * 3 / 4 * bytes_1_gib / 25e9).epsilon(1e-9));
  CHECK(dgx.latency(OpKind::all_reduce) == 6 * 2500_ns);
}

TEST_CASE("a double tree over 2 x 8 GPUs moves the bytes up and down once") {
  Priced dgx("dgx-a100", 2, 16, tree);
  // Of 16 parts (8 channels of two trees) a GPU sends 28 over its NVLink: 7 up and 7 down chains in
  // each tree; a NIC sends 2: up in one tree, down in the other.
  CHECK(dgx.transfer_s(OpKind::all_reduce, 1_GiB) ==
        Approx(28.0 / 16 * bytes_1_gib / 300e9).epsilon(1e-9));
  CHECK(dgx.latency(OpKind::all_reduce) == 2 * (2500_ns + 7 * 700_ns));
}

TEST_CASE("over many nodes a double tree is log2 deep and no NIC sends more than 2 of bytes") {
  Priced dgx("dgx-a100", 64, 512, tree);
  dgx.set_members([] {
    std::vector<int32_t> one_a_node(64);
    for (int32_t node = 0; node < 64; ++node) {
      one_a_node[static_cast<size_t>(node)] = node * 8;
    }
    return one_a_node;
  }());
  // In-order trees over 64 positions: six edges to the deepest leaf. Of two halves an inner node
  // sends one up and two down, a leaf one up; a node is inner in only one tree: 2 of bytes.
  CHECK(dgx.latency(OpKind::all_reduce) == 2 * 6 * 2500_ns);
  CHECK(dgx.transfer_s(OpKind::all_reduce, 1_GiB) == Approx(2 * bytes_1_gib / 25e9).epsilon(1e-9));
}

TEST_CASE("NCCL's choice is the tree for few bytes over nodes and the ring for many") {
  Priced best("dgx-a100", 2, 16, CollectiveAlgorithms::nccl);
  CHECK(best.latency(OpKind::all_reduce) == 2 * (2500_ns + 7 * 700_ns));
  // Ring: 30/16 of the bytes at 200 GB/s, 9.4 ps a byte; tree: 28/16 at 300 GB/s, 5.8 ps.
  CHECK(best.transfer_s(OpKind::all_reduce, 1_GiB) ==
        Approx(28.0 / 16 * bytes_1_gib / 300e9).epsilon(1e-9));
  Priced one_node("dgx-a100", 1, 2, CollectiveAlgorithms::nccl);
  CHECK(one_node.transfer_s(OpKind::all_reduce, 1_GiB) ==
        Approx(bytes_1_gib / 300e9).epsilon(1e-9));
}

TEST_CASE("all_to_all sends a part between every pair; gather and scatter meet at the root") {
  Priced dgx("dgx-a100", 1, 8, ring);
  CHECK(dgx.transfer_s(OpKind::all_to_all, 1_GiB) ==
        Approx(7.0 / 8 * bytes_1_gib / 300e9).epsilon(1e-9));
  CHECK(dgx.latency(OpKind::all_to_all) == 7 * 700_ns);
  for (const OpKind kind : {OpKind::gather, OpKind::scatter}) {
    CHECK(dgx.transfer_s(kind, 1_GiB, 5) == Approx(7 * bytes_1_gib / 300e9).epsilon(1e-9));
    CHECK(dgx.latency(kind, 5) == 7 * 700_ns);
  }
}

TEST_CASE("Gloo's algorithms on ranks on CPU that meet in host memory") {
  // 4 GB/s and 500 ns in and out of every rank.
  Priced host("cpu", 1, 8, gloo);
  CHECK(host.transfer_s(OpKind::all_reduce, 1_GiB) ==
        Approx(2.0 * 7 / 8 * bytes_1_gib / 4e9).epsilon(1e-9));
  CHECK(host.latency(OpKind::all_reduce) == 14 * 1_us);
  // A binomial tree of three levels: its root sends everything three times.
  CHECK(host.transfer_s(OpKind::broadcast, 1_GiB, 6) ==
        Approx(3 * bytes_1_gib / 4e9).epsilon(1e-9));
  CHECK(host.latency(OpKind::broadcast, 6) == 3 * 1_us);
  // A ring reduce-scatter, then seven eighths come to the root, over the same link.
  CHECK(host.transfer_s(OpKind::reduce, 1_GiB, 3) ==
        Approx(2.0 * 7 / 8 * bytes_1_gib / 4e9).epsilon(1e-9));
  CHECK(host.latency(OpKind::reduce, 3) == (7 + 7) * 1_us);
  CHECK(host.plan(OpKind::barrier, {}).volume == Bytes{});
  CHECK(host.latency(OpKind::barrier) == 3 * 1_us);
  const std::vector<int32_t> five{0, 1, 2, 3, 4};
  CHECK(host.cost().collective({OpKind::barrier, {}, five, 7, 0}).latency == 3 * 1_us);
}

TEST_CASE("a communicator of one member costs nothing") {
  Priced dgx("dgx-a100", 1, 8, CollectiveAlgorithms::nccl);
  dgx.set_members({4});
  const sim::TransferPlan plan = dgx.plan(OpKind::all_reduce, 1_GiB);
  CHECK(plan.latency == Time{});
  CHECK(plan.links == nullptr);
}

TEST_CASE("messages and copies take their routes") {
  Priced dgx("dgx-a100", 2, 16, ring);
  const auto within = dgx.cost().point_to_point(0, 7, 1_GiB);
  CHECK(within.latency == 700_ns);
  CHECK(dgx.transfer_s(within) == Approx(bytes_1_gib / 300e9).epsilon(1e-9));
  const auto across = dgx.cost().point_to_point(0, 15, 1_GiB);
  CHECK(across.latency == 2500_ns);
  CHECK(dgx.transfer_s(across) == Approx(bytes_1_gib / 25e9).epsilon(1e-9));
  // PCIe 4.0 x16: 16 GT/s * 16 lanes * 128/130 bits = 31.5 GB/s; device, switch, socket.
  const auto to_host = dgx.cost().copy(3, DeviceId{0}, host_device, 1_GiB);
  CHECK(to_host.latency == 500_ns);
  CHECK(dgx.transfer_s(to_host) == Approx(bytes_1_gib / 31.507692e9).epsilon(1e-6));
  // Within the GPU: a read and a write at 85 % of 2039 GB/s.
  const auto in_place = dgx.cost().copy(3, DeviceId{0}, DeviceId{0}, 1_GiB);
  CHECK(in_place.volume == Bytes{});
  CHECK(seconds(in_place.latency) == Approx(2 * bytes_1_gib / (0.85 * 2039e9)).epsilon(1e-6));
}

TEST_CASE("two GPUs that share a PCIe switch share its way to the host") {
  Priced dgx("dgx-a100", 1, 8, ring);
  sim::FlowNetwork network(dgx.cost().link_capacities());
  std::vector<sim::FlowNetwork::Forecast> forecasts;
  const auto first = dgx.cost().copy(0, DeviceId{0}, host_device, 1_GiB);
  const auto second = dgx.cost().copy(1, DeviceId{0}, host_device, 1_GiB);
  network.start({}, first, forecasts);
  network.start({}, second, forecasts);
  CHECK(seconds(forecasts.back().finish) == Approx(2 * bytes_1_gib / 31.507692e9).epsilon(1e-6));
}

TEST_CASE("ranks stand node by node on the devices that are free") {
  Cluster cluster = Priced::cluster("dgx-a100", 2);
  cluster.occupied = {0, 5};
  const auto placed = sim::place_ranks(cluster, 6, 0, 2);
  REQUIRE(placed.errors.empty());
  const std::vector<uint32_t> expected{1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 14, 15};
  for (size_t device = 0; device < expected.size(); ++device) {
    CHECK(placed.placement.devices[device].value == expected[device]);
  }
  CHECK(placed.placement.device(3, 1).value == 10);
  CHECK(sim::place_ranks(cluster, 7, 0, 2).errors.size() == 1);
  CHECK(sim::place_ranks(cluster, 2, 4, 2).errors.size() == 1);
}

TEST_CASE("ranks stand on nodes that have different numbers of them") {
  Cluster cluster = Priced::cluster("dgx-a100", 3);
  const auto placed = sim::place_ranks(cluster, 6, 3, 1, {1, 2, 3});
  REQUIRE(placed.errors.empty());
  const std::vector<uint32_t> expected{0, 8, 9, 16, 17, 18};
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    CHECK(placed.placement.devices[rank].value == expected[rank]);
  }
  CHECK(sim::place_ranks(cluster, 12, 9, 1, {1, 2, 9}).errors.size() == 1);
  CHECK(sim::place_ranks(cluster, 4, 1, 1, {1, 1, 1, 1}).errors.size() == 1);
}

TEST_CASE("the costs of a cluster say what they are based on") {
  const auto built = sim::build_costs(Priced::cluster("dgx-h100", 2), {.world_size = 16});
  REQUIRE(built.errors.empty());
  CHECK(built.costs.device_memory == 80_GiB);
  CHECK(built.costs.launch_overhead == 5_us);
  REQUIRE(built.costs.basis.size() == 4);
  for (const std::string& sentence : built.costs.basis) {
    CHECK(sentence.find("UNCALIBRATED") != std::string::npos);
  }
  CHECK(sim::build_costs(Priced::cluster("dgx-h100", 2), {.world_size = 17}).errors.size() == 1);
}

TEST_CASE("ranks share a host with those that run on it, not with those that could") {
  const auto host_of = [](Cluster cluster, const sim::CostOptions& options) {
    const auto built = sim::build_costs(cluster, options);
    REQUIRE(built.errors.empty());
    return built.costs.basis.back();
  };
  // 112 cores: 8 ranks per node get 14, 4 per node 28, and 2 on a node that could hold 8 get 56.
  const auto says = [](const std::string& sentence, const std::string& cores) {
    return sentence.find(" " + cores + " core(s) per rank") != std::string::npos;
  };
  Cluster cluster = Priced::cluster("dgx-h100", 2);
  CHECK(says(host_of(cluster, {.world_size = 16}), "14"));
  CHECK(says(host_of(cluster, {.world_size = 2, .ranks_per_node = 8}), "56"));
  cluster.occupied = {0, 1, 2, 3};
  CHECK(says(host_of(cluster, {.world_size = 8}), "28"));
}

}  // namespace topology_cost_test
