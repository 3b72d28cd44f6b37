#pragma once

#include <cstdint>

#include "model/core/values.hpp"
#include "model/network/context_part.hpp"

namespace lockstep {

// Reference arithmetic of attention by blocks of keys (Milakov and Gimelshein 2018, Liu et al.
// 2023): what the queries have seen so far, and the logarithm of the sum of its exponentials, is
// all that the next block needs. Scores and sums are fp32 (fp64 where an operand is).

/// Queries of some ranks meet keys of some ranks. Query and sum are [ranks, batch, positions,
/// heads, head width], key and value [ranks, batch, positions, key heads, head width], the
/// logarithms [ranks, batch, positions, heads]; each rank has so many positions of each sample.
struct AttentionBlock {
  int64_t batch = 1;
  int64_t positions = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;  ///< divides heads; each serves as many
  int64_t head_width = 1;
  bool causal = false;
  int64_t window = 0;  ///< positions that one attends to, itself included; 0: all that it may
  int32_t ranks = 1;   ///< that divide the positions
  int32_t first_query_rank = 0;
  int32_t query_ranks = 1;
  int32_t first_key_rank = 0;
  int32_t key_ranks = 1;

  int64_t query_rows() const { return query_ranks * batch * positions; }
  int64_t key_rows() const { return key_ranks * batch * positions; }
  int64_t query_elements() const { return query_rows() * heads * head_width; }
  int64_t key_elements() const { return key_rows() * key_heads * head_width; }
};

/// Lets `sum` and `log_sums` see these keys, too. A row that saw none has the logarithm -infinity.
void attend_block(const AttentionBlock& block, const Values& query, const Values& key,
                  const Values& value, Values& sum, Values& log_sums);

/// What attention gave to the rows of the query, of all keys.
struct AttendedRows {
  const Values& sum;
  const Values& sum_gradient;
  const Values& log_sums;
};
/// Gradients of a block's operands.
struct BlockGradients {
  Values& query;
  Values& key;
  Values& value;
};
/// Adds what these keys contribute to `gradients`.
void attend_block_backward(const AttentionBlock& block, const Values& query, const Values& key,
                           const Values& value, const AttendedRows& rows,
                           const BlockGradients& gradients);

// Columns of some widths side by side, and the same apart.

/// `together` is [rows, widths of all parts], each part [groups, rows, width / groups].
void part_columns(const Values& together, int64_t rows, int64_t groups,
                  const std::vector<Values*>& parts);
void join_columns(const std::vector<const Values*>& parts, int64_t rows, int64_t groups,
                  Values& together);

}  // namespace lockstep
