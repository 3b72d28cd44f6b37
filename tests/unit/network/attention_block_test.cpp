// Attention by blocks of keys, and the positions that ranks divide.
#include "model/network/arithmetic/attention_block.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "model/core/random.hpp"
#include "model/network/arithmetic/attention.hpp"

using namespace lockstep;

namespace attention_block_test {

namespace {

Values drawn_numbers(int64_t elements, uint64_t key) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, 2 * random_unit(key, static_cast<uint64_t>(i)) - 1);
  }
  return values;
}

constexpr int64_t batch = 2;
constexpr int64_t all_positions = 8;
constexpr int64_t heads = 2;
constexpr int64_t width = 3;

/// Rows of `whole` [batch, positions, ..] that a rank has, in its order.
Values of_rank(const Values& whole, int32_t ranks, int32_t index) {
  const RankPositions positions{all_positions / ranks, ranks, index};
  const int64_t row = whole.size() / (batch * all_positions);
  Values part(whole.dtype(), whole.size() / ranks);
  for (int64_t i = 0; i < batch * positions.count; ++i) {
    const int64_t from =
        i / positions.count * all_positions + positions.in_sample(i % positions.count);
    part.assign(i * row, whole.slice(from * row, row));
  }
  return part;
}

/// Query, key and value of a rank.
struct Parts {
  Values query{DType::fp64, 0};
  Values key{DType::fp64, 0};
  Values value{DType::fp64, 0};
};
Parts apart(const Values& projected, int64_t rows) {
  const Values nothing(DType::fp64, rows * heads * width);
  Parts parts{nothing, nothing, nothing};
  part_columns(projected, rows, 1, {&parts.query, &parts.key, &parts.value});
  return parts;
}

AttentionBlock block_of(int32_t ranks, int32_t query_rank, int32_t key_rank, bool causal) {
  AttentionBlock block;
  block.batch = batch;
  block.positions = all_positions / ranks;
  block.heads = block.key_heads = heads;
  block.head_width = width;
  block.causal = causal;
  block.ranks = ranks;
  block.first_query_rank = query_rank;
  block.first_key_rank = key_rank;
  return block;
}

void check_equal(const Values& values, const Values& expected) {
  REQUIRE(values.size() == expected.size());
  for (int64_t i = 0; i < values.size(); ++i) {
    INFO(i);
    CHECK(values.number(i) == Approx(expected.number(i)).margin(1e-12));
  }
}

}  // namespace

// Rank r has stretches r and 2 N - 1 - r of c positions. A position p sees p + 1 under a causal
// mask, so a rank's pairs are c (r c) + c ((2 N - 1 - r) c) + c (c + 1), whatever r is.
TEST_CASE("two stretches for each rank divide the pairs of a causal mask evenly") {
  for (const int32_t ranks : {2, 3, 8}) {
    const int64_t stretch = 5;
    std::set<int64_t> all;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const RankPositions positions{2 * stretch, ranks, rank};
      int64_t pairs = 0;
      for (int64_t i = 0; i < positions.count; ++i) {
        all.insert(positions.in_sample(i));
        pairs += positions.in_sample(i) + 1;
      }
      CHECK(pairs == stretch * stretch * (2 * ranks - 1) + stretch * (stretch + 1));
    }
    CHECK(std::ssize(all) == 2 * stretch * ranks);
    CHECK(*all.rbegin() == 2 * stretch * ranks - 1);
  }
}

TEST_CASE("blocks of keys in the order of a ring give the whole attention and its gradients") {
  for (const bool causal : {true, false}) {
    for (const int32_t ranks : {1, 2, 4}) {
      INFO(causal << ", ranks: " << ranks);
      const AttentionShape shape{batch, all_positions, heads, width, causal};
      const Values projected = drawn_numbers(3 * batch * all_positions * heads * width, 1);
      const Values gradient = drawn_numbers(batch * all_positions * heads * width, 2);
      Values attended(DType::fp64, gradient.size());
      Values projected_gradient(DType::fp64, projected.size());
      attention_forward(projected, shape, attended);
      attention_backward(projected, gradient, shape, projected_gradient);

      const int64_t rows = batch * all_positions / ranks;
      std::vector<Parts> gradients(static_cast<size_t>(ranks));
      for (int32_t rank = 0; rank < ranks; ++rank) {
        gradients[static_cast<size_t>(rank)] =
            apart(Values(DType::fp64, projected.size() / ranks), rows);
      }
      for (int32_t rank = 0; rank < ranks; ++rank) {
        Values sum(DType::fp64, rows * heads * width);
        Values logs(DType::fp64, rows * heads);
        for (int64_t i = 0; i < logs.size(); ++i) {
          logs.set(i, -std::numeric_limits<double>::infinity());
        }
        const Parts own = apart(of_rank(projected, ranks, rank), rows);
        for (int32_t step = 0; step < ranks; ++step) {
          const int32_t from = (rank - step + ranks) % ranks;
          const Parts there = apart(of_rank(projected, ranks, from), rows);
          attend_block(block_of(ranks, rank, from, causal), own.query, there.key, there.value, sum,
                       logs);
        }
        check_equal(sum, of_rank(attended, ranks, rank));
        const Values own_gradient = of_rank(gradient, ranks, rank);
        for (int32_t from = 0; from < ranks; ++from) {
          const Parts there = apart(of_rank(projected, ranks, from), rows);
          Parts& of_keys = gradients[static_cast<size_t>(from)];
          attend_block_backward(
              block_of(ranks, rank, from, causal), own.query, there.key, there.value,
              {sum, own_gradient, logs},
              {gradients[static_cast<size_t>(rank)].query, of_keys.key, of_keys.value});
        }
      }
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const Parts& parts = gradients[static_cast<size_t>(rank)];
        Values joined(DType::fp64, projected.size() / ranks);
        join_columns({&parts.query, &parts.key, &parts.value}, rows, 1, joined);
        check_equal(joined, of_rank(projected_gradient, ranks, rank));
      }
    }
  }
}

TEST_CASE("a window hides keys before it, and several query heads read one key head") {
  // Scores are 0: each query has the mean of the values that it sees. One key head serves two.
  AttentionBlock block;
  block.positions = 3;
  block.heads = 2;
  block.key_heads = 1;
  block.causal = true;
  block.window = 2;
  const Values query(DType::fp64, 6);
  const Values key = drawn_numbers(3, 3);
  Values sum(DType::fp64, 6);
  Values logs(DType::fp64, 6);
  for (int64_t i = 0; i < 6; ++i) {
    logs.set(i, -std::numeric_limits<double>::infinity());
  }
  attend_block(block, query, key, Values::of(DType::fp64, {1, 3, 7}), sum, logs);
  check_equal(sum, Values::of(DType::fp64, {1, 1, 2, 2, 5, 5}));
  check_equal(logs,
              Values::of(DType::fp64, {0, 0, std::log(2), std::log(2), std::log(2), std::log(2)}));
}

TEST_CASE("columns come apart by groups of heads") {
  // Two rows of [a b c d | e f]: two groups of the first part, then two of the second.
  const Values together = Values::of(DType::fp64, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16});
  Values first(DType::fp64, 8);
  Values second(DType::fp64, 4);
  part_columns(together, 2, 2, {&first, &second});
  CHECK(first == Values::of(DType::fp64, {1, 2, 11, 12, 3, 4, 13, 14}));
  CHECK(second == Values::of(DType::fp64, {5, 15, 6, 16}));
  Values again(DType::fp64, 12);
  join_columns({&first, &second}, 2, 2, again);
  CHECK(again == together);
}

}  // namespace attention_block_test
