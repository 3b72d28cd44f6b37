#pragma once

#include <vector>

#include "model/strategy/data_parallel/one_process.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/pipeline/stage_cuts.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

/// One process whose module has put its layers on several devices (`.to("cuda:1")`) and carries
/// activations from one to the next in its forward: one device computes at a time.
class NaiveModelParallel final : public OneProcessStrategy {
 public:
  NaiveModelParallel(const TrainingPlan& plan, const StrategyArguments& arguments)
      : plan_(&plan), arguments_(arguments) {}

  std::string_view name() const override { return "naive_model_parallel"; }
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  /// The module goes back to host memory: the host waits for every device.
  Program teardown(Rank& rank) override;
  Slice loss() const override { return devices_.back().replica.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  /// That with the loss, as the user's statements see it.
  Replica& replica() override { return devices_.back().replica; }
  std::vector<HeldParameter> held_parameters() override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<Transfer> transfers_per_step() const override { return transfers_.all(); }

 private:
  /// The layers on one device, and what crosses the border in front of them.
  struct Device {
    Replica replica;
    StageLayers layers{};
    Slice input{};            ///< the activation that came
    Slice output_gradient{};  ///< the gradient that came for the output
    Slice output{};           ///< without values: memory of what the last layer gives
  };

  void place_layers(int32_t devices);
  void forward_on(Rank& rank, size_t device, const Batch& batch, const StepOptions& options);
  void backward_on(Rank& rank, size_t device, const StepOptions& options);
  /// Memory on a device for what crosses the border before the layers of `border`.
  Slice at_border(Rank& rank, size_t border, size_t device, Purpose purpose) const;
  void carry(Rank& rank, const Slice& from, const Slice& to, const Replica& sender,
             const Replica& receiver, std::string_view label);
  void forget(Rank& rank, Device& device) const;

  const TrainingPlan* plan_;
  StrategyArguments arguments_;
  std::vector<Device> devices_;
  int64_t samples_ = 0;  ///< of the last forward
  Ticket loss_ready_;
  Transfers transfers_{{data_to_devices}};
};

/// "naive_model_parallel", NaiveModelParallelStrategy.
StrategyEntry naive_model_parallel();

}  // namespace lockstep
