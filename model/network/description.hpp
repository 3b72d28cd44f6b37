#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"
#include "model/expression/source.hpp"
#include "model/network/layer.hpp"
#include "model/scenario/tensor_values.hpp"

namespace lockstep {

/// The value of a layer's argument, as a file or a preset gives it.
using Argument =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, Time, Bytes>;

/// An empty name makes it positional, in torch's order.
struct NamedArgument {
  std::string name{};
  Argument value;
};

/// A layer as a user writes it: the torch.nn name and its arguments. `layers` is for the containers
/// Sequential, Residual, Concatenate, Multiply and repeat; `shortcut` for Residual alone (a
/// projection on the skip path). Every layer also takes `name`, `checkpoint`, `trainable` and
/// `device`; a Linear takes `tied_to`, the name of the embedding whose weight it shares. A
/// container takes `name` and `checkpoint`: what is in it, or in each turn of a repeat, is then one
/// checkpointed segment.
struct LayerDescription {
  std::string kind{};
  std::vector<NamedArgument> arguments{};
  std::vector<LayerDescription> layers{};
  std::vector<LayerDescription> shortcut{};
  SourcePlace source{};
  std::vector<TensorValues> initial{};  ///< how its parameters and buffers start
  /// Of a preset: the class of the container that repeats, such as a transformer layer.
  std::string block_class{};
};

/// A whole network before its shapes are known.
struct NetworkDescription {
  std::string name{};
  std::optional<Shape> input{};  ///< one sample; may be left out where the first layer implies it
  DType input_dtype = DType::fp32;
  bool flash_attention = true;  ///< else the scores of every head are kept in memory
  std::vector<LayerDescription> layers{};
  LayerDescription loss{.kind = "CrossEntropyLoss"};
  std::vector<TensorValues> initial{};  ///< by "LAYER.PARAMETER"; after those of the layers
  bool input_has_gradient = false;      ///< it is the output of another module
  bool output_is_input = false;         ///< of another module
};

}  // namespace lockstep
