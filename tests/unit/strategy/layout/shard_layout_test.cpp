// How tensors are cut over ranks: by hand, and that no element is lost or held twice.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "model/strategy/layout/shard_layout.hpp"

using namespace lockstep;

namespace shard_layout_test {

namespace {

using Pieces = std::vector<ShardPiece>;

/// How often the ranks hold each element, tensor after tensor.
std::vector<int> times_held(const ShardLayout& layout, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> begins;
  int64_t end = 0;
  for (const int64_t size : sizes) {
    begins.push_back(end);
    end += size;
  }
  std::vector<int> times(static_cast<size_t>(end), 0);
  for (int32_t rank = 0; rank < layout.ranks(); ++rank) {
    int64_t last = 0;
    for (const ShardPiece& piece : layout.pieces_of(rank)) {
      CHECK(piece.position >= last);
      last = piece.position + piece.elements;
      CHECK(last <= layout.shard_elements());
      for (int64_t i = 0; i < piece.elements; ++i) {
        ++times.at(static_cast<size_t>(begins[piece.tensor] + piece.first_element + i));
      }
    }
  }
  return times;
}

}  // namespace

TEST_CASE("a flat parameter is cut in equal parts that go through tensors") {
  // Tensors of 5 and 3 elements, the second at 8: 11 elements, 3 a rank and 1 of padding.
  const ShardLayout layout = ShardLayout::flat({5, 3}, 4, 4);
  CHECK(layout.shard_elements() == 3);
  CHECK(layout.offset_of(1) == 8);
  CHECK(layout.pieces_of(0) == Pieces{{0, 0, 3, 0}});
  CHECK(layout.pieces_of(1) == Pieces{{0, 3, 2, 0}});
  CHECK(layout.pieces_of(2) == Pieces{{1, 0, 1, 2}});
  CHECK(layout.pieces_of(3) == Pieces{{1, 1, 2, 0}});
}

TEST_CASE("a cut by rows leaves later ranks less or nothing") {
  // 3 rows of 2 over 4 ranks: one row each, none for the last; 5 rows of 1: two, two, one, none.
  const ShardLayout layout = ShardLayout::by_rows({{3, 2}, {5, 1}}, 4);
  CHECK(layout.shard_elements() == 2 + 2);
  CHECK(layout.pieces_of(0) == Pieces{{0, 0, 2, 0}, {1, 0, 2, 2}});
  CHECK(layout.pieces_of(2) == Pieces{{0, 4, 2, 0}, {1, 4, 1, 2}});
  CHECK(layout.pieces_of(3).empty());
}

TEST_CASE("every element is held once, whatever the number of ranks") {
  for (int32_t ranks = 1; ranks <= 9; ++ranks) {
    for (const std::vector<int64_t>& sizes :
         {std::vector<int64_t>{1}, {7, 1, 12}, {64, 3, 3, 3, 17}}) {
      std::vector<ShardLayout::Rows> rows;
      for (const int64_t size : sizes) {
        rows.push_back({size, 1});
      }
      const std::vector<ShardLayout> layouts{ShardLayout::flat(sizes, ranks),
                                             ShardLayout::flat(sizes, ranks, 4),
                                             ShardLayout::by_rows(rows, ranks)};
      for (const ShardLayout& layout : layouts) {
        const std::vector<int> times = times_held(layout, sizes);
        CHECK(times == std::vector<int>(times.size(), 1));
      }
    }
  }
}

TEST_CASE("who holds some of a tensor is who has a piece of it") {
  for (int32_t ranks = 1; ranks <= 9; ++ranks) {
    for (const ShardLayout& layout :
         {ShardLayout::flat({7, 0, 1, 12}, ranks, 4, 2),
          ShardLayout::flat({64, 3, 3, 3, 17}, ranks),
          ShardLayout::by_rows({{3, 2}, {5, 1}, {0, 1}, {17, 3}}, ranks)}) {
      std::map<size_t, std::vector<int32_t>> holders;
      size_t most = 0;
      for (int32_t rank = 0; rank < ranks; ++rank) {
        most = std::max(most, layout.pieces_of(rank).size());
        for (const ShardPiece& piece : layout.pieces_of(rank)) {
          holders[piece.tensor].push_back(rank);
        }
      }
      CHECK(layout.most_pieces() == static_cast<int64_t>(most));
      for (size_t tensor = 0; tensor < 4; ++tensor) {
        const ShardLayout::Ranks found = layout.ranks_with(tensor);
        std::vector<int32_t> all;
        for (int32_t rank = found.first; rank < found.end; ++rank) {
          all.push_back(rank);
        }
        CHECK(all == holders[tensor]);
      }
    }
  }
}

}  // namespace shard_layout_test
