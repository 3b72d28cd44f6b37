// Which ranks hold pieces of the same sizes: by hand.
#include <catch2/catch.hpp>

#include "model/strategy/layout/shard_kinds.hpp"

using namespace lockstep;

using Kinds = std::vector<int64_t>;

TEST_CASE("ranks within one tensor are alike, and those at its ends are not") {
  // 40 and 24 elements over 8 ranks: 8 each, five ranks within the first tensor.
  ShardKinds kinds(8);
  kinds.divide(ShardLayout::flat({40, 24}, 8), {0, 0});
  CHECK(kinds.kinds() == Kinds{0, 0, 0, 0, 0, 0, 0, 0});
  // Where the second is treated otherwise, its ranks are of another kind.
  kinds.divide(ShardLayout::flat({40, 24}, 8), {0, 1});
  CHECK(kinds.kinds() == Kinds{0, 0, 0, 0, 0, 1, 1, 1});
  // 12, 12 and 8 over 4: the second begins within the second rank and ends with the third.
  ShardKinds others(4);
  others.divide(ShardLayout::flat({12, 12, 8}, 4), {0, 0, 0});
  CHECK(others.kinds() == Kinds{0, 1, 0, 0});
}

TEST_CASE("a smaller part, an empty one and a full one are three kinds") {
  // 7 rows over 5 ranks: two, two, two, one, none.
  ShardKinds kinds(5);
  kinds.divide(ShardLayout::by_rows({{7, 3}}, 5), {0});
  CHECK(kinds.kinds() == Kinds{0, 0, 0, 1, 2});
  // 3 rows: one each for three ranks. Both cuts together tell the third from the first two no more.
  kinds.divide(ShardLayout::by_rows({{3, 1}}, 5), {0});
  CHECK(kinds.kinds() == Kinds{0, 0, 0, 1, 2});
  kinds.divide(ShardLayout::by_rows({{2, 1}}, 5), {0});
  CHECK(kinds.kinds() == Kinds{0, 0, 1, 2, 3});
}

TEST_CASE("owners are each of a kind of their own") {
  ShardKinds kinds(5);
  kinds.set_apart({3, 1, -1, 3});
  CHECK(kinds.kinds() == Kinds{0, 1, 0, 2, 0});
}
