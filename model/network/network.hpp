#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"
#include "model/network/checkpointed_segment.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

/// Where a parameter stands: tensor `tensor` of layer `layer`.
struct ParameterPlace {
  size_t layer = 0;
  size_t tensor = 0;
  bool operator==(const ParameterPlace&) const = default;
};

/// A neural network as a list of layers in forward order, which is also the order in which its
/// parameters are defined. Nested modules are flattened; a skip connection is the pair
/// residual_begin .. residual_add (they nest), with residual_shortcut between its two branches.
struct Network {
  std::string name;
  Shape input;  ///< one sample
  DType input_dtype = DType::fp32;
  std::vector<Layer> layers;
  Layer loss;
  /// Ascending and disjoint. A segment opens and closes within one branch of a skip connection, or
  /// holds all of it; gradients flow into each.
  std::vector<CheckpointedSegment> segments;

  /// Definition order; a tied weight appears once, where it is defined.
  std::vector<ParameterPlace> parameters() const;
  const ParameterTensor& parameter(ParameterPlace place) const {
    return layers[place.layer].parameters[place.tensor];
  }
  /// "layer1.0.conv1.weight"
  std::string parameter_name(ParameterPlace place) const;

  /// The segment that holds the layer; null where it is in none.
  const CheckpointedSegment* segment_of(size_t layer) const;

  int64_t parameter_elements() const;
  int64_t trainable_elements() const;
  Bytes buffer_bytes() const;
  /// Layers and loss, one sample.
  Flops forward_flops() const;
  Flops backward_flops() const;
  /// Kept between forward and backward.
  Bytes activation_bytes(DType dtype) const;
  /// Every layer and the loss have reference arithmetic, so that runs can carry values.
  bool has_reference_arithmetic() const;
};

}  // namespace lockstep
