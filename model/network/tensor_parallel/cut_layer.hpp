#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/network/layer.hpp"
#include "model/network/tensor_parallel/parallel_style.hpp"

namespace lockstep {

/// A layer that ranks compute together: what each of them has of it.
struct CutLayer {
  Layer layer{};
  /// Behind it, where its bias is a share of each rank.
  std::optional<Layer> bias{};
  std::string why_not{};  ///< empty: it can be cut
  std::string remedy{};
  int64_t divided = 0;  ///< what the number of ranks would have to divide; 0: it is something else
};

/// Linear and Embedding by their columns or rows (torch's ColwiseParallel and RowwiseParallel).
CutLayer cut_by(const Layer& whole, ParallelStyle::Kind kind, int32_t ranks);
/// Attention by heads, a gated feed-forward by its hidden features: the projections into it by
/// columns, the one out of it by rows.
CutLayer cut_inside(const Layer& whole, int32_t ranks);
/// What cut_inside() cuts: a layer of several Linears.
bool has_projections(LayerKind kind);
/// Attention whose query, key and value are one projection, which DTensor cannot cut by heads.
bool is_fused_attention(LayerKind kind);
/// Attention as Megatron-LM has it: a Linear of each rank's heads, their core, and the Linear out
/// of it, by rows.
struct CutAttention {
  Layer projection{};
  Layer core{};
  Layer output{};
  std::optional<Layer> bias{};  ///< whole, behind the sum of the outputs
  std::string why_not{};        ///< empty: it can be cut
  int64_t divided = 0;          ///< as of CutLayer
};
CutAttention cut_fused_attention(const Layer& whole, int32_t ranks);
/// GroupedQueryAttention in the same three, of the heads that it has. A bias of the output is in
/// the output.
CutAttention cut_grouped_attention(const Layer& whole);
/// The names of its Linears; the last one leads out of it.
std::vector<std::string> projections_of(LayerKind kind);

/// A layer that treats every element, or every position, alike, of a part of them: its input is
/// 1 / `ranks` of the whole one along `dimension`.
Layer of_part(const Layer& whole, size_t dimension, int32_t ranks);
bool treats_positions_alike(LayerKind kind);

}  // namespace lockstep
