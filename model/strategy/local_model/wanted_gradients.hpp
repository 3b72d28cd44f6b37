#pragma once

#include <cstddef>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/local_model/forward_record.hpp"
#include "model/strategy/local_model/replica_state.hpp"

namespace lockstep {

/// Whether a forward with these options runs the layer.
bool runs_layer(const Network& network, size_t layer, const StepOptions& options);
/// Whether the parameter gets a gradient by the backward of the forward, if its layer ran.
bool wants_gradient(const ReplicaState& state, const ForwardRecord& forward,
                    const ReplicaParameter& parameter);
/// The first layer with such a parameter that runs; the number of layers, where none has one.
size_t first_wanted_layer(const ReplicaState& state, const ForwardRecord& forward,
                          const StepOptions& options);
/// Whether the backward of the forward adds to gradients of the layer's parameters.
bool fills_gradients(const ReplicaState& state, const ForwardRecord& forward, size_t layer);

/// Gradients that the backward of a layer fills.
struct LayerGradients {
  std::vector<Slice> slices{};  ///< of each parameter that it reads; no_buffer: it gets none
  Bytes made{};                 ///< of those that did not exist
};
/// Makes those exist that do not.
LayerGradients gradients_to_fill(Rank& rank, ReplicaState& state, const ForwardRecord& forward,
                                 size_t layer);

}  // namespace lockstep
