#include "model/strategy/local_model/wanted_gradients.hpp"

#include <algorithm>

namespace lockstep {

bool runs_layer(const Network& network, size_t layer, const StepOptions& options) {
  const std::vector<size_t>& skipped = options.skipped_layers;
  const auto holds = [&](size_t module) { return network.modules[module].holds(layer); };
  return !std::binary_search(skipped.begin(), skipped.end(), layer) &&
         (options.modules.empty() ||
          std::any_of(options.modules.begin(), options.modules.end(), holds));
}

bool wants_gradient(const ReplicaState& state, const ForwardRecord& forward,
                    const ReplicaParameter& parameter) {
  return parameter.trainable && !forward.is_unused(parameter.place) &&
         (!forward.only_optimizer || state.is_held_by(*forward.only_optimizer, parameter));
}

size_t first_wanted_layer(const ReplicaState& state, const ForwardRecord& forward,
                          const StepOptions& options) {
  size_t first = state.network().layers.size();
  for (const ReplicaParameter& parameter : state.parameters()) {
    if (parameter.place.layer < first && wants_gradient(state, forward, parameter) &&
        runs_layer(state.network(), parameter.place.layer, options)) {
      first = parameter.place.layer;
    }
  }
  return first;
}

bool fills_gradients(const ReplicaState& state, const ForwardRecord& forward, size_t layer) {
  const bool ran = std::ranges::count(forward.trace, layer, &LayerRun::layer) != 0;
  return ran && layer >= forward.first_wanted_layer &&
         std::ranges::any_of(state.trainable_of(layer), [&](size_t index) {
           return !forward.only_optimizer ||
                  state.is_held_by(*forward.only_optimizer, state.parameters()[index]);
         });
}

LayerGradients gradients_to_fill(Rank& rank, ReplicaState& state, const ForwardRecord& forward,
                                 size_t layer) {
  LayerGradients gradients;
  const auto ensure_here = [&](ReplicaParameter& parameter) {
    gradients.made +=
        parameter.tensor.gradient.buffer == no_buffer ? parameter.tensor.value.bytes() : Bytes{};
    state.ensure_gradient(rank, parameter);
  };
  for (const size_t index : state.trainable_of(layer)) {
    if (wants_gradient(state, forward, state.parameters()[index])) {
      ensure_here(state.parameters()[index]);
    }
  }
  // A tied weight comes first, where the layer's own would be.
  for (const size_t index : state.parameters_of(layer)) {
    ReplicaParameter& parameter = state.parameters()[index];
    if (wants_gradient(state, forward, parameter)) {
      ensure_here(parameter);
      gradients.slices.push_back(parameter.tensor.gradient);
    } else {
      gradients.slices.push_back(Slice{no_buffer, parameter.tensor.value.dtype, 0, 0});
    }
  }
  return gradients;
}

}  // namespace lockstep
