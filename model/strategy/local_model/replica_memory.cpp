// What a replica holds where no values are computed: the memory that memory_of() counts.
#include <algorithm>

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

Slice Replica::hold(Rank& rank, Purpose purpose, Bytes whole) {
  return whole > Bytes{} && !plan_->numerics
             ? rank.allocate(purpose, DType::uint8, whole.count(), device_)
             : Slice{};
}

Slice Replica::keep(Rank& rank, Bytes of_sample) {
  return hold(rank, Purpose::activation, of_sample * now_.samples);
}

/// Returns what is there only while the layer runs.
Slice Replica::keep_for_backward(Rank& rank, LayerRun& run, const Turn& turn) {
  if (plan_->numerics) {
    return {};
  }
  const LayerMemory& memory = layout_->memory.layers[run.layer];
  const bool keeps = turn.training && run.layer >= now_.first_wanted_layer;
  if (turn.again) {
    run.recomputed = keep(rank, memory.recomputed);
  } else if (keeps) {
    run.kept = keep(rank, memory.kept);
  }
  if (run.weight_copies.buffer == no_buffer) {
    run.weight_copies = hold(rank, Purpose::activation, memory.weight_copies);
  }
  return hold(rank, Purpose::workspace, (keeps ? memory.forward : memory.evaluated) * now_.samples);
}

Slice Replica::begin_loss(Rank& rank, bool training) {
  if (plan_->numerics) {
    return {};
  }
  const LayerMemory& memory = layout_->memory.losses[now_.last_module];
  const bool keeps = training && now_.first_wanted_layer < network().layers.size();
  if (keeps) {
    now_.kept_by_loss = keep(rank, memory.kept);
  }
  return hold(rank, Purpose::workspace, (keeps ? memory.forward : memory.evaluated) * now_.samples);
}

// Autocast's cache ends with the forward; what autograd has saved stays.
void Replica::free_weight_copies(Rank& rank, bool training) {
  if (plan_->numerics) {
    return;
  }
  for (LayerRun& run : now_.trace) {
    const bool saved = training && run.layer >= now_.first_wanted_layer &&
                       layout_->memory.layers[run.layer].keeps_weight_copies;
    if (!saved) {
      forget(rank, run.weight_copies);
    }
  }
}

// Autograd makes a gradient of its own for every weight and hands it over as .grad, unless there is
// one already (an accumulated batch, a shared weight, a view of a bucket): then it is added and
// freed. Under mixed precision it is first made in the narrow type, and converted when the gradient
// of the output and the narrow copy of the weights have gone. `made_gradients` are accounted
// already.
Bytes Replica::backward_working_set(const LayerRun& run, Bytes made_gradients) const {
  if (plan_->numerics) {
    return {};
  }
  const LayerMemory& memory = layout_->memory.layers[run.layer];
  Bytes weights{};
  for (const size_t index : parameters_of(run.layer)) {
    const Parameter& parameter = parameters_[index];
    weights += wants_gradient(parameter) ? parameter.tensor.value.bytes() : Bytes{};
  }
  const Bytes activations = memory.backward * now_.samples;
  if (memory.weight_copies == Bytes{}) {
    return std::max(Bytes{}, activations + weights - made_gradients);
  }
  const Bytes narrow = std::min(weights, memory.weight_copies);
  const Bytes converted =
      memory.after_backward * now_.samples + narrow + weights - run.weight_copies.bytes();
  return std::max({Bytes{}, activations + narrow - made_gradients, converted - made_gradients});
}

Slice Replica::hold_for_loss_backward(Rank& rank) {
  return plan_->numerics ? Slice{}
                         : hold(rank, Purpose::workspace,
                                layout_->memory.losses[now_.last_module].backward * now_.samples);
}

}  // namespace lockstep
