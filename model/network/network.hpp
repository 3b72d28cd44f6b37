#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"
#include "model/network/checkpointed_segment.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

/// The place of a parameter: tensor `tensor` of layer `layer`.
struct ParameterPlace {
  size_t layer = 0;
  size_t tensor = 0;
  bool operator==(const ParameterPlace&) const = default;
};

/// A module of layers `first` to `last`, a container or a single layer: what wrap policies and cuts
/// go by.
struct NetworkBlock {
  std::string class_name;  ///< "Linear", "Sequential"; of a preset as its published code calls it
  size_t first = 0;
  size_t last = 0;
  bool repeats = false;  ///< what a preset repeats, or a turn of a `repeat`
  bool contains(size_t layer) const { return first <= layer && layer <= last; }
};

/// One of several models that are trained together.
struct NetworkModule {
  std::string name;
  size_t first_layer = 0;
  size_t end_layer = 0;  ///< behind the last
  Shape input;           ///< one sample, where the module runs first
  DType input_dtype = DType::fp32;
  Layer loss;  ///< where it runs last

  bool holds(size_t layer) const { return first_layer <= layer && layer < end_layer; }
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
  /// In the order of their first layers, an outer one before those in it.
  std::vector<NetworkBlock> blocks;
  /// In order, each behind the one before; empty where the layers are one model. Input and loss of
  /// the whole are then those of the first and of the last.
  std::vector<NetworkModule> modules;

  /// The computation of a loss kernel; Op::tag is the index of its module.
  const Layer& loss_of(int32_t module) const;

  const Shape& input_of(size_t module) const {
    return modules.empty() ? input : modules.at(module).input;
  }
  DType input_dtype_of(size_t module) const {
    return modules.empty() ? input_dtype : modules.at(module).input_dtype;
  }

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
  /// The first layer that has no reference arithmetic, so that runs cannot carry values through it;
  /// null: every layer has. `training`: some forward is one of a training.
  const Layer* layer_without_arithmetic(bool training) const;
};

/// Its own parameters, or those of the layer that it is tied to, need gradients.
bool is_trainable(const Network& network, const Layer& layer);

}  // namespace lockstep
