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
  return layer.kind == "MultiheadAttention" || layer.kind == "CausalSelfAttention" ||
         layer.kind == "GroupedQueryAttention";
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
      marked += checkpoint_blocks(layer.shortcut) + checkpoint_blocks(layer.layers);
    }
  }
  return marked;
}

namespace {

bool is_of(const LayerDescription& layer, const std::vector<std::string>& classes) {
  const std::string& name = layer.block_class.empty() ? layer.kind : layer.block_class;
  return std::find(classes.begin(), classes.end(), name) != classes.end();
}

void checkpoint_classes_in(std::vector<LayerDescription>& layers,
                           const std::vector<std::string>& classes, bool in_marked,
                           CheckpointedClasses& found) {
  for (LayerDescription& layer : layers) {
    const bool is_named = is_of(layer, classes);
    if (is_named && in_marked) {
      found.has_nested = true;
    } else if (is_named) {
      mark(layer, "torch");
      ++found.marked;
    }
    checkpoint_classes_in(layer.layers, classes, in_marked || is_named, found);
    checkpoint_classes_in(layer.shortcut, classes, in_marked || is_named, found);
  }
}

bool asks_for_recomputation(const NamedArgument& argument) {
  const bool* truth = std::get_if<bool>(&argument.value);
  const std::string* word = std::get_if<std::string>(&argument.value);
  return argument.name == argument_name &&
         ((truth != nullptr && *truth) || (word != nullptr && *word != "false"));
}

}  // namespace

CheckpointedClasses checkpoint_classes(std::vector<LayerDescription>& layers,
                                       const std::vector<std::string>& classes) {
  CheckpointedClasses found;
  checkpoint_classes_in(layers, classes, false, found);
  return found;
}

bool has_checkpoints(const std::vector<LayerDescription>& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const LayerDescription& layer) {
    return std::any_of(layer.arguments.begin(), layer.arguments.end(), asks_for_recomputation) ||
           has_checkpoints(layer.layers) || has_checkpoints(layer.shortcut);
  });
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
