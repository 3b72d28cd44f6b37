#pragma once

#include "model/strategy/data_parallel/one_process.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

/// One process on one device: nothing crosses ranks.
class SingleDevice final : public OneProcessStrategy {
 public:
  explicit SingleDevice(const TrainingPlan& plan) : replica_(plan, DeviceId{0}) {}

  std::string_view name() const override { return "single_device"; }
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }

 private:
  Replica replica_;
  Ticket loss_ready_;
};

StrategyEntry single_device();

}  // namespace lockstep
