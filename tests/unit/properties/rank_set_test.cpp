#include "properties/rank_set.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

TEST_CASE("a rank set reads as runs") {
  CHECK(ranks_text(std::vector<int32_t>{0, 1, 2, 5}) == "0-2, 5");
  CHECK(ranks_text(std::vector<int32_t>{7, 3, 4, 3}) == "3-4, 7");
  CHECK(RankSet({0}).phrase() == "rank 0");
  CHECK(RankSet({1, 2, 3}).phrase() == "ranks 1-3");
  CHECK(RankSet().phrase() == "no rank");
}

TEST_CASE("ranks added in any order merge into the same runs") {
  RankSet set;
  for (const int32_t rank : {4, 2, 0, 3, 1, 2}) {
    set.add(rank);
  }
  CHECK(set == RankSet::all(5));
  CHECK(set.size() == 5);
  CHECK(set.contains(4));
  CHECK_FALSE(set.contains(5));
}

TEST_CASE("a scattered set is cut short and says how many ranks it has") {
  RankSet set;
  for (int32_t rank = 0; rank < 100; rank += 2) {
    set.add(rank);
  }
  CHECK(set.text() == "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, .. (50 ranks)");
}

TEST_CASE("sets intersect when they share a rank") {
  CHECK(RankSet({1, 5}).intersects(RankSet({5, 9})));
  CHECK_FALSE(RankSet({1, 5}).intersects(RankSet({2, 3, 4})));
}
