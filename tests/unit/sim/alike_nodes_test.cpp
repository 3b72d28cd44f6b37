// Links of nodes that are alike, priced as one, against the same patterns over every link.
#include "sim/alike_nodes.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "model/cluster/presets.hpp"
#include "sim/build_costs.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace alike_nodes_test {

namespace {

/// Ranks at the first `per_node` devices of every node; rank 0's node is one of its own, and every
/// third one beside, unless it is the first of those.
struct Alike {
  Alike(const Cluster& cluster, int32_t per_node) : topology(cluster) {
    std::vector<uint32_t> class_of_rank;
    for (int32_t node = 0; node < cluster.nodes; ++node) {
      for (int32_t place = 0; place < per_node; ++place) {
        devices.push_back(DeviceNumber{static_cast<uint32_t>(node * cluster.node.devices + place)});
        const int32_t kind = node == 0 ? 0 : node % 3 == 2 ? 2 : 1;
        class_of_rank.push_back(static_cast<uint32_t>(kind * per_node + place));
      }
    }
    nodes = sim::AlikeNodes::of(devices, topology, RankClasses(class_of_rank));
  }

  Topology topology;
  std::vector<DeviceNumber> devices;
  std::optional<sim::AlikeNodes> nodes;
};

/// The weight of each link, by its number; 0: not crossed.
std::vector<uint32_t> by_link(const sim::TrafficPattern& pattern, size_t links) {
  std::vector<uint32_t> weights(links, 0);
  for (size_t place = 0; place < pattern.links.size(); ++place) {
    weights.at(pattern.links[place]) = pattern.weights[place];
  }
  return weights;
}

void check_same(const Alike& alike, const sim::TrafficPattern& folded,
                const sim::TrafficPattern& whole) {
  CHECK(folded.latency == whole.latency);
  CHECK(folded.parts == whole.parts);
  const auto links = static_cast<size_t>(alike.topology.link_count());
  const std::vector<uint32_t> weights = by_link(whole, links);
  const std::vector<uint32_t> folded_weights =
      by_link(folded, alike.nodes->size() * static_cast<size_t>(alike.nodes->links_per_node()));
  std::vector<sim::LinkIndex> first_of_classes;
  for (uint32_t link = 0; link < links; ++link) {
    const sim::LinkIndex number = alike.nodes->number_of(LinkId{link});
    REQUIRE(folded_weights.at(number) == weights[link]);
    if (weights[link] > 0 &&
        std::ranges::find(first_of_classes, number) == first_of_classes.end()) {
      first_of_classes.push_back(number);
    }
  }
  // Fair sharing looks at links in the order of the list.
  CHECK(folded.links == first_of_classes);
}

}  // namespace

TEST_CASE("links of nodes that are alike carry what each of them would") {
  for (const char* preset : {"dgx-a100", "dgx-h100", "dgx-1v", "cpu"}) {
    for (const int nodes : {3, 4, 5, 7, 8, 9, 16, 21}) {
      Cluster cluster = *cluster_preset(preset);
      cluster.nodes = nodes;
      for (const int32_t per_node : {1, 3, cluster.node.devices}) {
        if (per_node > cluster.node.devices) {
          continue;
        }
        const Alike alike(cluster, per_node);
        REQUIRE(alike.nodes);
        CHECK(alike.nodes->size() < static_cast<size_t>(nodes) + 1);
        const sim::Members members{alike.devices, cluster.node.devices};
        const auto size = static_cast<int64_t>(alike.devices.size());
        for (const int64_t steps : {size - 1, 2 * (size - 1)}) {
          check_same(alike, alike.nodes->ring(alike.topology, steps),
                     sim::ring_pattern(alike.topology, members, steps));
        }
        check_same(alike, alike.nodes->double_tree(alike.topology),
                   sim::double_tree_pattern(alike.topology, members));
      }
    }
  }
}

TEST_CASE("a million GPUs have as many links as the nodes that differ") {
  Cluster cluster = *cluster_preset("dgx-h100");
  cluster.nodes = 125'000;
  std::vector<uint32_t> class_of_rank(1'000'000);
  for (size_t rank = 0; rank < class_of_rank.size(); ++rank) {
    class_of_rank[rank] = static_cast<uint32_t>(rank < 8 ? rank : 8 + rank % 8);
  }
  sim::CostOptions options{.world_size = 1'000'000};
  options.classes = std::make_shared<const RankClasses>(std::move(class_of_rank));
  const sim::Costs costs = sim::build_costs(cluster, options).costs;
  // Nodes 0 and 1 run ranks; others have one to six edges in the two trees.
  CHECK(costs.communication->link_capacities().size() <
        static_cast<size_t>(costs.communication->topology().link_count()) / 125'000 * 12);
}

TEST_CASE("what crosses links of some alike nodes alone is not priced") {
  Cluster cluster = *cluster_preset("dgx-a100");
  cluster.nodes = 32;
  std::vector<uint32_t> class_of_rank(256);
  for (size_t rank = 0; rank < class_of_rank.size(); ++rank) {
    class_of_rank[rank] = static_cast<uint32_t>(rank < 8 ? rank : 8 + rank % 8);
  }
  sim::CostOptions options{.world_size = 256};
  options.classes = std::make_shared<const RankClasses>(std::move(class_of_rank));
  std::vector<int32_t> all(256);
  std::iota(all.begin(), all.end(), 0);
  const auto fresh = [&] { return sim::build_costs(cluster, options).costs; };
  sim::Costs costs = fresh();
  costs.pricing().collective({OpKind::all_reduce, 1_MiB, all, 0, 0});
  costs.pricing().collective({OpKind::broadcast, 1_MiB, all, 0, 0});
  costs.pricing().copy(3, host_device, DeviceId{0}, 1_MiB);
  costs.pricing().copy(9, host_device, DeviceId{0}, 1_MiB);
  CHECK(costs.communication->is_exact());
  costs.pricing().copy(77, host_device, DeviceId{0}, 1_MiB);  // another node stands for its one
  CHECK(!costs.communication->is_exact());
  costs = fresh();
  costs.pricing().collective({OpKind::all_reduce, 1_MiB, std::span(all).first(16), 1, 0});
  CHECK(!costs.communication->is_exact());
  costs = fresh();
  costs.pricing().collective({OpKind::all_to_all, 1_MiB, all, 0, 0});
  CHECK(!costs.communication->is_exact());
}

}  // namespace alike_nodes_test
