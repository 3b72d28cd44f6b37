#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/core/units.hpp"
#include "model/scenario/object.hpp"
#include "model/scenario/placed.hpp"
#include "model/scenario/tensor_values.hpp"

namespace lockstep {

/// A layer known only by its price, for one sample.
struct LayerCost {
  Given<int64_t> parameters;
  Given<Time> forward;
  Given<Time> backward;
  Given<Bytes> activation;
};

/// The library whose activation checkpointing a layer uses; `checkpoint: true` is torch's.
enum class LayerCheckpoint : uint8_t { none, torch, fairscale };

/// One entry of `layers`: a torch.nn module with its arguments, a container, or a price.
struct LayerSpec {
  enum class Kind : uint8_t {
    module,
    sequential,
    residual,
    concatenate,
    multiply,
    aside,
    repeat,
    cost
  };
  Kind kind = Kind::module;
  Object object;                    ///< of `module`: the class and torch's arguments
  LayerCost cost;                   ///< of `cost`
  int64_t times = 1;                ///< of `repeat`
  std::vector<LayerSpec> layers;    ///< of the containers
  std::vector<LayerSpec> shortcut;  ///< of `residual`: layers on the skip path
  Given<std::string> name;
  Given<LayerCheckpoint> checkpoint;
  Given<bool> trainable;
  std::vector<Placed<int64_t>> frozen_on;  ///< ranks on which it is not trained
  Given<int64_t> device;                   ///< stage or device that holds it
  std::vector<TensorValues> initial;       ///< of its parameters and buffers
  SourcePlace place{};
};

enum class ActivationCheckpointing : uint8_t { none, selective, full };
enum class AttentionKind : uint8_t { flash, math };
/// torch.memory_format of images between layers.
enum class MemoryFormat : uint8_t { contiguous, channels_last };
/// An object that cannot be pickled, and so cannot be sent to a spawned process.
enum class Unpicklable : uint8_t { model, transform, optimizer, dataloader, callback };

struct NamedModel;

/// The hook that computes the loss: each replica's step, or what gets the outputs of all replicas
/// (training_step_end of Lightning 1.x).
enum class LossHook : uint8_t { training_step, training_step_end };

/// The model: exactly one of `preset`, `hf`, `layers`, `modules`.
struct ModelSpec {
  Given<std::string> preset;
  Given<std::string> hf;               ///< path of a config.json, relative to the scenario file
  std::vector<ObjectArgument> config;  ///< what that file holds
  std::vector<LayerSpec> layers;
  std::vector<NamedModel> modules;
  std::vector<ObjectArgument> shape;   ///< the preset's own arguments: `seq_len`, `num_classes`, ..
  std::vector<Placed<int64_t>> input;  ///< shape of one sample
  Given<std::string> input_dtype;      ///< a dtype's name
  std::optional<Object> loss;
  Given<LossHook> loss_in;
  Given<ActivationCheckpointing> activation_checkpointing;
  Given<bool> compile;
  Given<AttentionKind> attention;
  Given<MemoryFormat> memory_format;
  std::vector<Placed<Unpicklable>> unpicklable;
  std::vector<TensorValues> initial;  ///< by the full name of a parameter or a buffer
  SourcePlace place{};
};

/// One of `modules`, known to the program as `self.NAME`.
struct NamedModel {
  std::string name;
  ModelSpec model;
};

}  // namespace lockstep
