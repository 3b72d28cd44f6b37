#include "model/trainer/prepare/alike_units.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace alike_units_test {

namespace {

std::vector<size_t> classes_of(const std::optional<RankClasses>& classes) {
  std::vector<size_t> by_rank;
  for (size_t rank = 0; classes && rank < classes->ranks(); ++rank) {
    by_rank.push_back(classes->of(rank));
  }
  return by_rank;
}

}  // namespace

TEST_CASE("without neighbours a node is a unit") {
  CHECK(classes_of(alike_units({0, 1, 1, 1, 1, 1}, {2, 1}, {})) ==
        std::vector<size_t>{0, 1, 2, 3, 2, 3});
}

TEST_CASE("a replica over two nodes makes a unit of both") {
  // Four nodes of one rank; two nodes compute a replica.
  const auto classes = alike_units({0, 1, 1, 1, 1, 1}, {1, 1}, {{0, 0, 1, 1, 2, 2}, {}});
  CHECK(classes_of(classes) == std::vector<size_t>{0, 1, 2, 3, 2, 3});
  CHECK(classes->are_neighbours(2, 3));
  CHECK_FALSE(classes->are_neighbours(0, 2));
}

TEST_CASE("pipelines that take turns over the nodes are units of nodes far apart") {
  // Stage 0 on ranks 0-2, stage 1 on ranks 3-5: three pipelines.
  CHECK(classes_of(alike_units({0, 1, 1, 1, 1, 1}, {1, 1}, {{0, 1, 2, 0, 1, 2}, {}})) ==
        std::vector<size_t>{0, 1, 1, 2, 3, 3});
}

TEST_CASE("a replica in which a rank differs is of a class of its own") {
  CHECK(classes_of(alike_units({0, 1, 1, 1, 1, 2, 1, 1}, {2, 1}, {{0, 0, 1, 1, 2, 2, 3, 3}, {}})) ==
        std::vector<size_t>{0, 1, 2, 3, 4, 5, 2, 3});
}

TEST_CASE("two replicas of a node differ by their places") {
  const auto classes = alike_units({0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 1},
                                   {{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, {}});
  CHECK(classes_of(classes) == std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7});
  CHECK_FALSE(classes->are_neighbours(5, 6));
}

TEST_CASE("columns of a neighbourhood that are alike are of the same classes") {
  // Three nodes of three ranks, each a neighbourhood of three columns; the first rank of each
  // differs.
  const auto classes = alike_units({0, 1, 1, 2, 1, 1, 2, 1, 1}, {3, 1},
                                   {{0, 0, 0, 1, 1, 1, 2, 2, 2}, {0, 1, 2, 0, 1, 2, 0, 1, 2}});
  CHECK(classes_of(classes) == std::vector<size_t>{0, 1, 1, 2, 3, 3, 2, 3, 3});
}

TEST_CASE("columns on different nodes are not alike") {
  // A neighbourhood of four columns on two nodes.
  const auto classes = alike_units({0, 1, 1, 1}, {2, 1}, {{0, 0, 0, 0}, {0, 1, 2, 3}});
  CHECK(classes_of(classes) == std::vector<size_t>{0, 1, 2, 2});
}

TEST_CASE("a rank that differs sets its whole column apart") {
  // Two stages of three columns on one node; the last rank of the second stage differs.
  const auto classes =
      alike_units({0, 1, 1, 1, 1, 2}, {6, 1}, {{0, 0, 0, 0, 0, 0}, {0, 1, 2, 0, 1, 2}});
  CHECK(classes_of(classes) == std::vector<size_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("columns that share a host link with one that differs are set apart") {
  // Six columns of one rank on a node, where pairs share a link: the first differs.
  const auto classes =
      alike_units({0, 1, 1, 1, 1, 1}, {6, 2}, {{0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5}});
  CHECK(classes_of(classes) == std::vector<size_t>{0, 1, 2, 2, 2, 2});
}

}  // namespace alike_units_test
