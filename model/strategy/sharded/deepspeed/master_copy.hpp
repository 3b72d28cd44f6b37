#pragma once

#include <vector>

#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/strategy.hpp"

namespace lockstep {

/// All trainable parameters in full precision, which every rank updates at stage 0 beside a model
/// in 16 bits (deepspeed/runtime/fp16/fused_optimizer.py and unfused_optimizer.py).
class MasterCopy {
 public:
  explicit MasterCopy(Replica& replica);

  /// Allocates it and writes first values, those of the replica.
  void allocate(Rank& rank);
  void forget_optimizer(Rank& rank);
  std::vector<HeldParameter> held_parameters() const;
  /// What a checkpoint has of it: values and the optimizer's state.
  Bytes bytes() const;

  struct Step {
    UpdateOptions options{};
    double loss_scale = 1;  ///< by which gradients are divided
    SiteId site{};
  };
  /// Makes the optimizer's state, if it has not been, as the engine does when it starts.
  void make_state(Rank& rank, const Step& step);
  /// Whether all gradients are finite. The host waits for the answer.
  Task<bool> is_finite(Rank& rank, SiteId site);
  /// Clips, updates, writes the replica's parameters, and makes its gradients None.
  void update(Rank& rank, const Step& step);
  void drop_gradients(Rank& rank);

 private:
  bool is_fused() const;
  std::vector<Slice> values() const;
  void widen(Rank& rank, const std::vector<Slice>& wide, SiteId site);
  void step_by(Rank& rank, const Step& step, const std::vector<Slice>& gradients);

  Replica* replica_;
  std::vector<size_t> parameters_;  ///< trainable ones, indices into Replica::parameters()
  std::vector<OptimizedTensor> tensors_;
  bool has_state_ = false;
};

}  // namespace lockstep
