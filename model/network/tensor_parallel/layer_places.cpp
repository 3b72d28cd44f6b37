#include "model/network/tensor_parallel/layer_places.hpp"

#include <utility>

namespace lockstep {

void map_ranges(const Network& whole, const LayerPlaces& places, Network& cut) {
  for (Layer& layer : cut.layers) {
    if (layer.tied_layer) {
      layer.tied_layer = places.holder.at(*layer.tied_layer);
    }
    if (layer.aside) {
      layer.aside->begin = places.first.at(layer.aside->begin);
    }
  }
  for (NetworkBlock block : whole.blocks) {
    block.first = places.first.at(block.first);
    block.last = places.last.at(block.last);
    cut.blocks.push_back(std::move(block));
  }
  for (CheckpointedSegment segment : whole.segments) {
    const bool is_core = segment.recomputation == Recomputation::attention_core;
    segment.last = places.last.at(segment.last);
    segment.first = places.first.at(segment.first);
    for (size_t i = segment.first; is_core && i <= segment.last; ++i) {
      if (cut.layers[i].attention_core) {  // alone, or in the layer that it is a part of
        segment.first = segment.last = i;
      }
    }
    cut.segments.push_back(segment);
  }
}

}  // namespace lockstep
