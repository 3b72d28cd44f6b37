#include "model/strategy/local_model/replica_update.hpp"

namespace lockstep {

void ReplicaUpdate::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  for (ReplicaParameter& parameter : state_.parameters()) {
    if (!state_.is_held_by(optimizer, parameter)) {
      continue;
    }
    if (set_to_none) {
      state_.forget_gradient(rank, parameter);
    } else if (parameter.tensor.gradient.buffer != no_buffer) {
      state_.fill_with_zeros(rank, parameter.tensor.gradient);
    }
  }
}

std::vector<Slice> ReplicaUpdate::gradients_of(size_t optimizer, const OwnedStep* owned) const {
  const bool shares_norm = owned != nullptr && owned->norm.has_value();
  std::vector<Slice> gradients;
  for (size_t index = 0; index < state_.parameters().size(); ++index) {
    const ReplicaParameter& parameter = state_.parameters()[index];
    const bool steps =
        parameter.trainable && state_.is_held_by(optimizer, parameter) && state_.holds(index);
    if (steps && parameter.tensor.gradient.buffer != no_buffer &&
        (!shares_norm || owned->owns[index])) {
      gradients.push_back(parameter.tensor.gradient);
    }
  }
  return gradients;
}

void ReplicaUpdate::clip(Rank& rank, const UpdateOptions& options, const OwnedStep* owned) {
  const std::vector<Slice> gradients = gradients_of(options.optimizer, owned);
  if (owned == nullptr || !owned->norm) {
    clip_gradients(rank, options.clipping, gradients, state_.device(), nullptr);
    return;
  }
  OwnedStep counts = *owned;
  for (size_t index = 0; index < counts.owns.size() && !counts.counts.empty(); ++index) {
    counts.owns[index] = counts.owns[index] && counts.counts[index];
  }
  const std::vector<Slice> counted = gradients_of(options.optimizer, &counts);
  SharedNorm norm = *owned->norm;
  norm.counted = &counted;
  clip_gradients(rank, options.clipping, gradients, state_.device(), &norm);
}

Ticket ReplicaUpdate::step(Rank& rank, const UpdateOptions& options, SiteId site,
                           const OwnedStep* owned) {
  std::vector<OptimizedTensor*> tensors;
  for (size_t index = 0; index < state_.parameters().size(); ++index) {
    ReplicaParameter& parameter = state_.parameters()[index];
    const bool is_own = owned == nullptr || owned->owns[index];
    if (is_own && parameter.trainable && state_.is_held_by(options.optimizer, parameter) &&
        state_.holds(index)) {
      tensors.push_back(&parameter.tensor);
    }
  }
  clip(rank, options, owned);
  const OptimizerPlan optimizer = scheduled(state_.plan().optimizers[options.optimizer], options);
  return lockstep::optimizer_step(rank, optimizer, kernels_of(state_.plan()), tensors,
                                  {state_.compute(), {}, site});
}

}  // namespace lockstep
