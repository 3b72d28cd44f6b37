#include "model/network/arithmetic/attention_block.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "model/network/arithmetic/numbers.hpp"
#include "model/network/arithmetic/vectors.hpp"

namespace lockstep {

namespace {

/// One query of one head, and the keys of its sample in that head.
class BlockQuery {
 public:
  BlockQuery(const AttentionBlock& block, int64_t row, int64_t head)
      : block_(block), row_(row), head_(head) {
    const int64_t of_rank = block.batch * block.positions;
    const auto rank = static_cast<int32_t>(row / of_rank);
    sample_ = row % of_rank / block.positions;
    position_ = positions_of(block.first_query_rank + rank).in_sample(row % block.positions);
  }
  size_t query() const {
    return static_cast<size_t>((row_ * block_.heads + head_) * block_.head_width);
  }
  size_t log_sum() const { return static_cast<size_t>(row_ * block_.heads + head_); }

  /// Where the keys begin that it attends to, ascending by rank and position there.
  void find_keys(std::vector<size_t>& keys) const {
    keys.clear();
    const int64_t served = head_ / (block_.heads / block_.key_heads);
    for (int32_t rank = 0; rank < block_.key_ranks; ++rank) {
      const RankPositions there = positions_of(block_.first_key_rank + rank);
      const int64_t first = (rank * block_.batch + sample_) * block_.positions;
      for (int64_t i = 0; i < block_.positions; ++i) {
        if (sees(there.in_sample(i))) {
          const int64_t vector = (first + i) * block_.key_heads + served;
          keys.push_back(static_cast<size_t>(vector * block_.head_width));
        }
      }
    }
  }

 private:
  RankPositions positions_of(int32_t rank) const { return {block_.positions, block_.ranks, rank}; }
  bool sees(int64_t other) const {
    return (!block_.causal || other <= position_) &&
           (block_.window == 0 || other > position_ - block_.window);
  }

  const AttentionBlock& block_;
  int64_t row_;
  int64_t head_;
  int64_t sample_ = 0;
  int64_t position_ = 0;
};

template <class Visit>
void for_each_block_query(const AttentionBlock& block, Visit visit) {
  for (int64_t row = 0; row < block.query_rows(); ++row) {
    for (int64_t head = 0; head < block.heads; ++head) {
      visit(BlockQuery(block, row, head));
    }
  }
}

template <class T>
T block_scale(const AttentionBlock& block) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(block.head_width)));
}

void ensure_block_fits(const AttentionBlock& block, const Values& query, const Values& key,
                       const Values& value, const Values& sum) {
  ensure(query.size() == block.query_elements() && sum.size() == query.size() &&
             key.size() == block.key_elements() && value.size() == key.size(),
         "a block's operands fit");
}

}  // namespace

// With L the logarithm of the sum so far and s the new scores, L' = log(exp L + sum exp s), and
// sum' = exp(L - L') sum + sum exp(s - L') value.
void attend_block(const AttentionBlock& block, const Values& query, const Values& key,
                  const Values& value, Values& sum, Values& log_sums) {
  ensure_block_fits(block, query, key, value, sum);
  with_accumulator({&query, &sum, &log_sums}, [&]<class T>(T) {
    const std::vector<T> q = numbers_of<T>(query);
    const std::vector<T> k = numbers_of<T>(key);
    const std::vector<T> v = numbers_of<T>(value);
    std::vector<T> y = numbers_of<T>(sum);
    std::vector<T> logs = numbers_of<T>(log_sums);
    std::vector<size_t> keys;
    std::vector<T> scores;
    for_each_block_query(block, [&](const BlockQuery& at) {
      at.find_keys(keys);
      if (keys.empty()) {
        return;
      }
      T& log_sum = logs[at.log_sum()];
      T greatest = log_sum;
      scores.clear();
      for (const size_t there : keys) {
        scores.push_back(block_scale<T>(block) * dot(q, at.query(), k, there, block.head_width));
        greatest = std::max(greatest, scores.back());
      }
      T total = std::exp(log_sum - greatest);
      for (const T score : scores) {
        total += std::exp(score - greatest);
      }
      const T grown = greatest + std::log(total);
      const T kept = std::exp(log_sum - grown);
      for (size_t i = 0; i < static_cast<size_t>(block.head_width); ++i) {
        y[at.query() + i] *= kept;
      }
      for (size_t i = 0; i < keys.size(); ++i) {
        add_multiple(std::exp(scores[i] - grown), v, keys[i], y, at.query(), block.head_width);
      }
      log_sum = grown;
    });
    store_numbers(y, sum);
    store_numbers(logs, log_sums);
  });
}

// With P = exp(s - L) the probabilities, dP = dy value^T and D = dy sum^T, which is the sum of P dP
// over all keys, the scores' gradient is P (dP - D).
void attend_block_backward(const AttentionBlock& block, const Values& query, const Values& key,
                           const Values& value, const AttendedRows& rows,
                           const BlockGradients& gradients) {
  ensure_block_fits(block, query, key, value, rows.sum);
  with_accumulator({&query, &rows.sum, &rows.log_sums}, [&]<class T>(T) {
    const std::vector<T> q = numbers_of<T>(query);
    const std::vector<T> k = numbers_of<T>(key);
    const std::vector<T> v = numbers_of<T>(value);
    const std::vector<T> y = numbers_of<T>(rows.sum);
    const std::vector<T> dy = numbers_of<T>(rows.sum_gradient);
    const std::vector<T> logs = numbers_of<T>(rows.log_sums);
    std::vector<T> dq = numbers_of<T>(gradients.query);
    std::vector<T> dk = numbers_of<T>(gradients.key);
    std::vector<T> dv = numbers_of<T>(gradients.value);
    const T scale = block_scale<T>(block);
    const int64_t width = block.head_width;
    std::vector<size_t> keys;
    for_each_block_query(block, [&](const BlockQuery& at) {
      at.find_keys(keys);
      const T mean = dot(dy, at.query(), y, at.query(), width);
      for (const size_t there : keys) {
        const T score = scale * dot(q, at.query(), k, there, width);
        const T probability = std::exp(score - logs[at.log_sum()]);
        const T slope = scale * (probability * (dot(dy, at.query(), v, there, width) - mean));
        add_multiple(slope, k, there, dq, at.query(), width);
        add_multiple(slope, q, at.query(), dk, there, width);
        add_multiple(probability, dy, at.query(), dv, there, width);
      }
    });
    store_numbers(dq, gradients.query);
    store_numbers(dk, gradients.key);
    store_numbers(dv, gradients.value);
  });
}

namespace {

/// Calls visit(part, where it is in that part, where it is together, width) for every stretch.
template <class Sizes, class Visit>
void for_each_column_stretch(const Sizes& sizes, int64_t rows, int64_t groups, Visit visit) {
  int64_t row_width = 0;
  for (const int64_t size : sizes) {
    row_width += size / rows;
  }
  int64_t column = 0;
  for (size_t part = 0; part < sizes.size(); ++part) {
    const int64_t width = sizes[part] / rows / groups;
    for (int64_t group = 0; group < groups; ++group, column += width) {
      for (int64_t row = 0; row < rows; ++row) {
        visit(part, (group * rows + row) * width, row * row_width + column, width);
      }
    }
  }
}

}  // namespace

void part_columns(const Values& together, int64_t rows, int64_t groups,
                  const std::vector<Values*>& parts) {
  std::vector<int64_t> sizes;
  for (const Values* part : parts) {
    sizes.push_back(part->size());
  }
  for_each_column_stretch(sizes, rows, groups,
                          [&](size_t part, int64_t in_part, int64_t in_whole, int64_t width) {
                            parts[part]->assign(in_part, together.slice(in_whole, width));
                          });
}

void join_columns(const std::vector<const Values*>& parts, int64_t rows, int64_t groups,
                  Values& together) {
  std::vector<int64_t> sizes;
  for (const Values* part : parts) {
    sizes.push_back(part->size());
  }
  for_each_column_stretch(sizes, rows, groups,
                          [&](size_t part, int64_t in_part, int64_t in_whole, int64_t width) {
                            together.assign(in_whole, parts[part]->slice(in_part, width));
                          });
}

}  // namespace lockstep
