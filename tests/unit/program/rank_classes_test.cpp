#include "model/program/by_rank.hpp"

#include <catch2/catch.hpp>
#include <memory>

using namespace lockstep;

TEST_CASE("a value is kept once for each class of ranks") {
  const auto classes = std::make_shared<const RankClasses>(std::vector<uint32_t>{0, 1, 2, 1, 2, 1});
  CHECK(classes->size() == 3);
  CHECK(classes->first(2) == 2);
  CHECK(classes->ranks_in(1) == 3);
  ByRank<int> values(6, classes);
  values[3] = 7;
  CHECK(values[5] == 7);
  CHECK(values[4] == 0);
  CHECK(values.size() == 6);
  CHECK(values.distinct().size() == 3);
  CHECK(values.first_sharing(4) == 2);
  CHECK(std::vector<int>(values.begin(), values.end()) == std::vector<int>{0, 7, 0, 7, 0, 7});
}

TEST_CASE("without classes each rank has a value of its own") {
  ByRank<int> values(3);
  values[1] = 5;
  values.push_back(9);
  CHECK(std::vector<int>(values.begin(), values.end()) == std::vector<int>{0, 5, 0, 9});
  CHECK(values.first_sharing(2) == 2);
  CHECK(values.ranks_of(1) == 1);
}

TEST_CASE("neighbours are first ranks of one neighbourhood") {
  // Two ranks compute a replica: those of rank 0, and three replicas that are alike.
  const RankClasses classes({0, 1, 2, 3, 2, 3, 2, 3}, {0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(classes.have_neighbours());
  CHECK(classes.are_neighbours(2, 3));
  CHECK_FALSE(classes.are_neighbours(1, 2));
  CHECK(classes.is_first(3));
  CHECK_FALSE(classes.is_first(5));
  CHECK(classes.meant_by(6, 3) == 7);
  CHECK(classes.meant_by(6, 0) == 0);
  CHECK_FALSE(RankClasses({0, 1, 1}).are_neighbours(1, 1));
}
