#include "model/strategy/local_model/counted_memory.hpp"

#include <algorithm>

#include "model/strategy/local_model/wanted_gradients.hpp"

namespace lockstep {

Slice CountedMemory::hold(Rank& rank, Purpose purpose, Bytes whole) {
  return whole > Bytes{} && !plan().numerics
             ? rank.allocate(purpose, DType::uint8, whole.count(), device())
             : Slice{};
}

Slice CountedMemory::keep(Rank& rank, Bytes of_sample) {
  return hold(rank, Purpose::activation, of_sample * now_.samples);
}

Slice CountedMemory::begin_layer(Rank& rank, LayerRun& run, const LayerTurn& turn) {
  if (plan().numerics) {
    return {};
  }
  const LayerMemory& memory = state_.memory().layers[run.layer];
  const bool keeps = turn.training && run.layer >= now_.first_wanted_layer;
  if (turn.again) {
    run.own_rare().recomputed = keep(rank, memory.recomputed);
  } else if (keeps) {
    run.kept = keep(rank, memory.kept);
  }
  if (memory.weight_copies > Bytes{} && run.rare().weight_copies.buffer == no_buffer) {
    run.own_rare().weight_copies = hold(rank, Purpose::activation, memory.weight_copies);
  }
  return hold(rank, Purpose::workspace, (keeps ? memory.forward : memory.evaluated) * now_.samples);
}

Slice CountedMemory::begin_loss(Rank& rank, bool training) {
  if (plan().numerics) {
    return {};
  }
  const LayerMemory& memory = state_.memory().losses[now_.last_module];
  const bool keeps = training && now_.first_wanted_layer < network().layers.size();
  if (keeps) {
    now_.loss.kept = keep(rank, memory.kept);
  }
  return hold(rank, Purpose::workspace, (keeps ? memory.forward : memory.evaluated) * now_.samples);
}

// Autocast's cache ends with the forward; what autograd has saved stays.
void CountedMemory::free_weight_copies(Rank& rank, bool training) {
  if (plan().numerics) {
    return;
  }
  for (LayerRun& run : now_.trace) {
    const bool saved = training && run.layer >= now_.first_wanted_layer &&
                       state_.memory().layers[run.layer].keeps_weight_copies;
    if (RareBuffers* rare = run.rare_if_any(); rare != nullptr && !saved) {
      forget(rank, rare->weight_copies);
    }
  }
}

// Autograd makes a gradient of its own for every weight and hands it over as .grad, unless there is
// one already (an accumulated batch, a shared weight, a view of a bucket): then it is added and
// freed. Under mixed precision it is first made in the narrow type, and converted when the gradient
// of the output and the narrow copy of the weights have gone.
Bytes CountedMemory::backward_working_set(const LayerRun& run, Bytes made_gradients) const {
  if (plan().numerics) {
    return {};
  }
  const LayerMemory& memory = state_.memory().layers[run.layer];
  Bytes weights{};
  for (const size_t index : parameters_of(run.layer)) {
    const ReplicaParameter& parameter = state_.parameters()[index];
    weights += wants_gradient(state_, now_, parameter) ? parameter.tensor.value.bytes() : Bytes{};
  }
  const Bytes activations = memory.backward * now_.samples;
  if (memory.weight_copies == Bytes{}) {
    return std::max(Bytes{}, activations + weights - made_gradients);
  }
  const Bytes narrow = std::min(weights, memory.weight_copies);
  const Bytes converted =
      memory.after_backward * now_.samples + narrow + weights - run.rare().weight_copies.bytes();
  return std::max({Bytes{}, activations + narrow - made_gradients, converted - made_gradients});
}

Slice CountedMemory::begin_backward(Rank& rank, const LayerRun& run, Bytes made_gradients) {
  return hold(rank, Purpose::workspace, backward_working_set(run, made_gradients));
}

Slice CountedMemory::begin_backward_of_loss(Rank& rank) {
  return plan().numerics ? Slice{}
                         : hold(rank, Purpose::workspace,
                                state_.memory().losses[now_.last_module].backward * now_.samples);
}

}  // namespace lockstep
