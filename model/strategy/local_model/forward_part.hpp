#pragma once

#include "model/strategy/local_model/forward_record.hpp"
#include "model/strategy/local_model/replica_state.hpp"

namespace lockstep {

/// A part of the work on one forward of a replica, and on its backward: made where it is needed,
/// since both outlive it.
class ForwardPart {
 public:
  ForwardPart(ReplicaState& state, ForwardRecord& now) : state_(state), now_(now) {}

 protected:
  const TrainingPlan& plan() const { return state_.plan(); }
  const Network& network() const { return state_.network(); }
  const Layer& layer_of(const LayerRun& run) const { return network().layers[run.layer]; }
  const std::vector<size_t>& parameters_of(size_t layer) const {
    return state_.parameters_of(layer);
  }
  const Slice& value_of(size_t parameter) const {
    return state_.parameters()[parameter].tensor.value;
  }
  StreamId compute() const { return state_.compute(); }
  DeviceId device() const { return state_.device(); }
  Slice transient(Rank& rank, int64_t elements, DType dtype) const {
    return now_.allocate_transient(rank, elements, dtype);
  }

  ReplicaState& state_;
  ForwardRecord& now_;
};

}  // namespace lockstep
