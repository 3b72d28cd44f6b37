#include "model/network/modules.hpp"

#include <utility>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

void append(NamedNetwork part, Network& whole) {
  const size_t offset = whole.layers.size();
  NetworkModule module{part.name,
                       offset,
                       offset + part.network.layers.size(),
                       part.network.input,
                       part.network.input_dtype,
                       std::move(part.network.loss)};
  for (Layer& layer : part.network.layers) {
    layer.name = part.name + "." + layer.name;
    if (layer.tied_layer) {
      *layer.tied_layer += offset;
    }
    if (layer.aside) {
      layer.aside->begin += offset;
    }
    whole.layers.push_back(std::move(layer));
  }
  for (CheckpointedSegment segment : part.network.segments) {
    segment.first += offset;
    segment.last += offset;
    whole.segments.push_back(segment);
  }
  for (NetworkBlock block : part.network.blocks) {
    block.first += offset;
    block.last += offset;
    whole.blocks.push_back(std::move(block));
  }
  whole.modules.push_back(std::move(module));
}

}  // namespace

Network joined(std::vector<NamedNetwork> parts) {
  ensure(!parts.empty(), "modules of a network");
  Network whole;
  whole.name = "modules";
  for (NamedNetwork& part : parts) {
    append(std::move(part), whole);
  }
  whole.input = whole.modules.front().input;
  whole.input_dtype = whole.modules.front().input_dtype;
  whole.loss = whole.modules.back().loss;
  return whole;
}

}  // namespace lockstep
