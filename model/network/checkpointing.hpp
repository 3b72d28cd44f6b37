#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/network/checkpointed_segment.hpp"
#include "model/network/description.hpp"

namespace lockstep {

/// Reads a word of a description's `checkpoint`: "true" and "torch", "fairscale",
/// "attention_core"; "false" is no recomputation. Nothing for any other word.
struct CheckpointMark {
  std::optional<Recomputation> recomputation{};
};
std::optional<CheckpointMark> checkpoint_mark(std::string_view word);

/// Marks every block that repeats: what a preset names as one, else each turn of a repeat and each
/// Residual outside of it; a Sequential is entered. Marks of the description's own stay as they
/// are. Returns how many it marked.
int64_t checkpoint_blocks(std::vector<LayerDescription>& layers);
/// Marks every layer and container of these classes, a preset's block by the class that its
/// published code has. What lies in another marked one is not marked.
struct CheckpointedClasses {
  int64_t marked = 0;
  bool has_nested = false;  ///< one of the classes lies in another
};
CheckpointedClasses checkpoint_classes(std::vector<LayerDescription>& layers,
                                       const std::vector<std::string>& classes);
/// Whether a mark of the description's own asks for recomputation.
bool has_checkpoints(const std::vector<LayerDescription>& layers);
/// Marks the core of every attention layer that is not in a marked container.
int64_t checkpoint_attention(std::vector<LayerDescription>& layers);

}  // namespace lockstep
