#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/network/network.hpp"

namespace lockstep {

/// Layers [first, end) of a network that one stage of a pipeline computes.
struct StageLayers {
  size_t first = 0;
  size_t end = 0;
  bool holds(size_t layer) const { return first <= layer && layer < end; }
  bool operator==(const StageLayers&) const = default;
};

/// Where a network may be cut before a layer: not within a skip connection, nor within a segment of
/// activation checkpointing.
bool may_cut_before(const Network& network, size_t layer);

/// How a network is cut into stages.
enum class StageSplit : uint8_t {
  blocks,      ///< what repeats (transformer layers, residual blocks), as evenly as can be
  parameters,  ///< the largest stage has as few parameters as can be
  time,        ///< the largest stage has as few FLOPs of forward and backward as can be
};

struct StageCuts {
  std::vector<StageLayers> stages;
  std::string why_not{};  ///< empty: they are there
  std::string remedy{};
};

/// What the layers before and behind the blocks count as, in blocks: the first and the last stage
/// get so many fewer.
struct EndsInBlocks {
  int32_t first = 0;
  int32_t last = 0;
};
/// With blocks: what is before the first is in the first stage, what is behind the last in the last
/// one; the first `blocks mod stages` stages have one block more, as torch.tensor_split cuts.
StageCuts cut_into_stages(const Network& network, int32_t stages, StageSplit split,
                          const EndsInBlocks& ends = {});
/// The stages of a network, in what ranks that compute its layers together have of it: a layer
/// takes what is exchanged for its input with it.
std::vector<StageLayers> stages_of_part(const std::vector<StageLayers>& stages,
                                        const Network& whole, const Network& part);
/// At the numbers of layers that begin the second stage, the third, ..
StageCuts cut_before_layers(const Network& network, int32_t stages,
                            const std::vector<int64_t>& first_layers);

}  // namespace lockstep
