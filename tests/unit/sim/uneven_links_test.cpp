#include "sim/uneven_links.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "model/cluster/presets.hpp"
#include "sim/build_costs.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace uneven_links_test {
using sim::CollectiveAlgorithms;

namespace {

/// Seven nodes with two ranks each, of which the second node runs for those behind it.
class SevenNodes {
 public:
  /// With `neighbours` ranks of a node exchange something, so that links of nodes are not folded.
  explicit SevenNodes(CollectiveAlgorithms algorithms, bool neighbours = true) {
    std::vector<uint32_t> class_of_rank;
    Neighbourhoods neighbourhoods;
    for (uint32_t rank = 0; rank < 14; ++rank) {
      if (neighbours) {
        neighbourhoods.of_rank.push_back(rank / 2);
      }
      class_of_rank.push_back(rank < 2 ? rank : 2 + rank % 2);
    }
    Cluster cluster = *cluster_preset("dgx-a100");
    cluster.nodes = 7;
    costs_ = sim::build_costs(
                 cluster, {.world_size = 14,
                           .ranks_per_node = 2,
                           .classes = std::make_shared<RankClasses>(class_of_rank, neighbourhoods),
                           .algorithms = algorithms})
                 .costs;
  }
  sim::TransferPlan all_reduce(std::vector<int32_t> members) {
    members_ = std::move(members);
    return costs_.communication->collective({OpKind::all_reduce, 1_MiB, members_, ++calls_, 0});
  }

 private:
  sim::Costs costs_;
  std::vector<int32_t> members_;
  uint64_t calls_ = 0;
};

const std::vector<int32_t> first_of_each_node{0, 2, 4, 6, 8, 10, 12};

}  // namespace

TEST_CASE("a ring crosses the links of all nodes alike") {
  SevenNodes nodes(CollectiveAlgorithms::ring);
  CHECK(nodes.all_reduce(first_of_each_node).uneven == nullptr);
}

TEST_CASE("a tree crosses the links of its leaves less often") {
  SevenNodes nodes(CollectiveAlgorithms::tree);
  const sim::TransferPlan plan = nodes.all_reduce(first_of_each_node);
  REQUIRE(plan.uneven != nullptr);
  CHECK_FALSE(plan.uneven->empty());
  CHECK(std::ranges::is_sorted(*plan.uneven));
}

TEST_CASE("where links of nodes are folded, a tree crosses those of its leaves less often, too") {
  const std::vector<int32_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  SevenNodes of_rings(CollectiveAlgorithms::ring, false);
  CHECK(of_rings.all_reduce(all).uneven == nullptr);
  SevenNodes of_trees(CollectiveAlgorithms::tree, false);
  const sim::TransferPlan plan = of_trees.all_reduce(all);
  REQUIRE(plan.uneven != nullptr);
  CHECK(std::ranges::is_sorted(*plan.uneven));
  CHECK_FALSE(plan.uneven->empty());
  for (const sim::LinkIndex link : *plan.uneven) {
    CHECK(std::ranges::binary_search(*plan.links, link));
  }
}

TEST_CASE("a group within the node that runs has no other nodes to differ from") {
  SevenNodes nodes(CollectiveAlgorithms::tree);
  CHECK(nodes.all_reduce({2, 3}).uneven == nullptr);
}

}  // namespace uneven_links_test
