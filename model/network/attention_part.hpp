#pragma once

#include <cstdint>

#include "model/network/layer.hpp"

namespace lockstep {

/// What ranks that divide the positions of an attention's core compute between their exchanges.
/// Query, key and value are [groups, rows, heads / groups x width] each, where each of the ranks
/// gets one group of heads, or else of one group. Operands, of a forward and of a backward:
enum class AttentionPart : uint8_t {
  /// reads query, key and value side by side; writes them apart |
  /// reads the output's gradient; writes it apart
  take_apart,
  /// reads query, key, value; writes weighted sum and logarithms (AttentionBlock), which see these
  /// keys, too |
  /// reads query, key, value, sum, its gradient, logarithms; writes gradients of query, key and
  /// value, to each of which it adds
  attend,
  /// reads the weighted sum apart; writes the output |
  /// reads gradients of query, key and value; writes them side by side
  put_together,
};

/// Behind a kernel's own scalars: 3 of a forward, 1 of a backward.
enum AttentionScalar : uint8_t {
  attention_part,
  attention_groups,
  first_query_rank,
  query_ranks,
  first_key_rank,
  key_ranks,
  begins_query,  ///< what is written by the rows of the query is 0 before
  begins_key,    ///< the same by the rows of the key, in a backward
  attention_scalars,
};

/// The sizes of an attention's core, of those heads that the layer has.
struct CoreWidths {
  int64_t heads = 1;
  int64_t key_heads = 1;
  int64_t head_width = 1;
  bool causal = false;
  int64_t window = 0;
  int64_t query() const { return heads * head_width; }
  int64_t key() const { return key_heads * head_width; }
};
CoreWidths core_widths(const Layer& core);
/// Positions of the whole sample, also where the layer has a part of them.
int64_t positions_of_sample(const Layer& layer);

/// An attention's core whose positions ranks divide.
bool is_divided_core(const Layer& layer);
/// A layer that computes by which positions it has: its kernels are the reference arithmetic in
/// every world.
bool has_divided_positions(const Layer& layer);

}  // namespace lockstep
