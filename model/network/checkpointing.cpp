#include "model/network/checkpointing.hpp"

#include <algorithm>
#include <string>

namespace lockstep {

namespace {

constexpr std::string_view argument_name = "checkpoint";

bool is_marked(const LayerDescription& layer) {
  return std::any_of(layer.arguments.begin(), layer.arguments.end(),
                     [](const NamedArgument& argument) { return argument.name == argument_name; });
}

void mark(LayerDescription& layer, const char* word) {
  layer.arguments.push_back({std::string(argument_name), std::string(word)});
}

bool is_attention(const LayerDescription& layer) {
  return layer.kind == "MultiheadAttention" || layer.kind == "CausalSelfAttention";
}

}  // namespace

std::optional<CheckpointMark> checkpoint_mark(std::string_view word) {
  if (word == "false") {
    return CheckpointMark{};
  }
  if (word == "true" || word == "torch") {
    return CheckpointMark{Recomputation::torch};
  }
  if (word == "fairscale") {
    return CheckpointMark{Recomputation::fairscale};
  }
  if (word == "attention_core") {
    return CheckpointMark{Recomputation::attention_core};
  }
  return std::nullopt;
}

int64_t checkpoint_blocks(std::vector<LayerDescription>& layers) {
  int64_t marked = 0;
  for (LayerDescription& layer : layers) {
    if (is_marked(layer)) {
      continue;
    }
    if (!layer.block_class.empty() || layer.kind == "repeat" || layer.kind == "Residual") {
      mark(layer, "torch");
      ++marked;
    } else {
      marked += checkpoint_blocks(layer.layers);
    }
  }
  return marked;
}

int64_t checkpoint_attention(std::vector<LayerDescription>& layers) {
  int64_t marked = 0;
  for (LayerDescription& layer : layers) {
    if (is_marked(layer)) {
      continue;
    }
    if (is_attention(layer)) {
      mark(layer, "attention_core");
      ++marked;
    }
    marked += checkpoint_attention(layer.layers) + checkpoint_attention(layer.shortcut);
  }
  return marked;
}

}  // namespace lockstep
