// Which rank owns which parameter, by hand.
#include <catch2/catch.hpp>

#include "model/strategy/layout/parameter_owners.hpp"

using namespace lockstep;

using Owners = std::vector<int32_t>;

// 24 to rank 0, 6 to rank 1, 30 to rank 1 (6 < 24), 5 to rank 0 (24 < 36), 15 to rank 0 (29 < 36),
// 3 to rank 1 (36 < 44), 6 to rank 1 (39 < 44), 2 to rank 0 (44 < 45).
TEST_CASE("FairScale gives each parameter to the rank with the fewest elements so far") {
  CHECK(owners_in_order({{24}, {6}, {30}, {5}, {15}, {3}, {6}, {2}}, 2) ==
        Owners{0, 1, 1, 0, 0, 1, 1, 0});
}

TEST_CASE("a frozen parameter counts as one element for FairScale") {
  CHECK(owners_in_order({{100, false}, {10}, {10}}, 2) == Owners{0, 1, 0});
}

// 30 to 0, 24 to 1, 15 to 1 (24 < 30), 6 to 0 (30 < 39), 6 to 0 (36 < 39), 5 to 1 (39 < 42), ..
TEST_CASE("ZeroRedundancyOptimizer gives away the largest first, ties in order of definition") {
  CHECK(owners_largest_first({{24}, {6}, {30}, {5}, {15}, {3}, {6}, {2}}, 2) ==
        Owners{1, 0, 0, 1, 1, 0, 0, 1});
}

TEST_CASE("ranks may own nothing") {
  CHECK(owners_largest_first({{4}, {2}}, 4) == Owners{0, 1});
  CHECK(owners_in_order({}, 4).empty());
}
