#include "model/network/network.hpp"

#include <algorithm>
#include <iterator>

#include "model/network/arithmetic.hpp"

namespace lockstep {

std::vector<ParameterPlace> Network::parameters() const {
  std::vector<ParameterPlace> places;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    for (size_t tensor = 0; tensor < layers[layer].parameters.size(); ++tensor) {
      places.push_back({layer, tensor});
    }
  }
  return places;
}

std::string Network::parameter_name(ParameterPlace place) const {
  const Layer& layer = layers[place.layer];
  return (layer.module.empty() ? layer.name : layer.module) + "." + parameter(place).name;
}

const CheckpointedSegment* Network::segment_of(size_t layer) const {
  const auto after = std::upper_bound(
      segments.begin(), segments.end(), layer,
      [](size_t wanted, const CheckpointedSegment& segment) { return wanted < segment.first; });
  return after != segments.begin() && std::prev(after)->contains(layer) ? &*std::prev(after)
                                                                        : nullptr;
}

const Layer& Network::loss_of(int32_t module) const {
  return modules.empty() ? loss : modules.at(static_cast<size_t>(module)).loss;
}

int64_t Network::parameter_elements() const {
  int64_t elements = 0;
  for (const Layer& layer : layers) {
    elements += layer.parameter_elements();
  }
  return elements;
}

int64_t Network::trainable_elements() const {
  int64_t elements = 0;
  for (const ParameterPlace place : parameters()) {
    elements += parameter(place).trainable ? parameter(place).elements() : 0;
  }
  return elements;
}

Bytes Network::buffer_bytes() const {
  Bytes bytes;
  for (const Layer& layer : layers) {
    for (const BufferTensor& buffer : layer.buffers) {
      bytes += buffer.byte_size();
    }
  }
  return bytes;
}

Flops Network::forward_flops() const {
  Flops flops = flops_of(loss, Pass::forward, 1);
  for (const Layer& layer : layers) {
    flops += flops_of(layer, Pass::forward, 1);
  }
  return flops;
}

Flops Network::backward_flops() const {
  Flops flops = flops_of(loss, Pass::input_gradient, 1);
  for (const Layer& layer : layers) {
    flops += flops_of(layer, Pass::input_gradient, 1) + flops_of(layer, Pass::weight_gradient, 1);
  }
  return flops;
}

Bytes Network::activation_bytes(DType dtype) const {
  Bytes bytes = loss.activation_bytes(dtype);
  for (const Layer& layer : layers) {
    bytes += layer.activation_bytes(dtype);
  }
  return bytes;
}

const Layer* Network::layer_without_arithmetic(bool training) const {
  const auto found = std::find_if(layers.begin(), layers.end(), [training](const Layer& layer) {
    return !has_reference_arithmetic(layer, training);
  });
  return found == layers.end() ? nullptr : &*found;
}

bool is_trainable(const Network& network, const Layer& layer) {
  return layer.has_trainable_parameters() ||
         (layer.tied_layer && network.layers[*layer.tied_layer].has_trainable_parameters());
}

}  // namespace lockstep
