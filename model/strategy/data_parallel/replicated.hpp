#pragma once

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/exchange/gradient_exchange.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// Every rank holds all parameters and runs the whole model on its own batch. Strategies of this
/// kind are one loop; they differ in how gradients are exchanged and in who updates which
/// parameters.
class ReplicatedDataParallel : public DistributedStrategy {
 public:
  /// `plan` is the training as the scenario asks for it, `computing` the types in which the model
  /// runs. `gradients_label`: what its exchanges are called in transfers.LABEL.
  ReplicatedDataParallel(const TrainingPlan& plan, const TrainingPlan& computing,
                         std::string_view gradients_label);

  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;

  std::vector<Transfer> transfers_per_step() const override { return transfers_.all(); }
  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }

 protected:
  /// Null outside of a fit, where the model is not wrapped.
  virtual GradientExchange* exchange() = 0;
  /// Runs before each forward through the wrapper.
  virtual Program before_forward(Rank& rank, const StepOptions& options);
  /// `options`, where the strategy backpropagates something else than the loss.
  virtual StepOptions for_backward(const StepOptions& options) { return options; }

  const TrainingPlan& computing_plan() const { return computing_plan_; }
  Transfers& transfers() { return transfers_; }

 private:
  std::string_view gradients_label_;
  TrainingPlan computing_plan_;
  Replica replica_;
  Ticket loss_ready_{};
  Transfers transfers_;
};

}  // namespace lockstep
