#pragma once

#include <vector>

#include "model/strategy/registry.hpp"
#include "model/strategy/replica.hpp"

namespace lockstep {

/// torch.nn.DataParallel: one process drives K devices; the model lives on device 0 and is copied
/// to the others at every forward.
class DataParallel final : public Strategy {
 public:
  explicit DataParallel(const TrainingPlan& plan) : plan_(&plan) {}

  std::string_view name() const override { return "dp"; }
  Program setup(Rank& rank) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank) override;
  Program zero_gradients(Rank& rank, bool set_to_none) override;
  Program reduce(Rank&, Slice, Reduction, SiteId) override { co_return; }
  Program barrier(Rank&, SiteId) override { co_return; }
  Program broadcast(Rank&, Slice, int32_t, SiteId) override { co_return; }
  Program all_gather(Rank& rank, Slice part, Slice whole, SiteId site) override;
  int32_t replicas(const Rank&) const override { return 1; }
  int32_t replica_index(const Rank&) const override { return 0; }
  Slice loss() const override { return loss_; }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replicas_.front(); }
  std::vector<Transfer> transfers_per_step() const override;
  bool steps_on_copies() const override { return replicas_.size() > 1; }

 private:
  void scatter(const Batch& batch);
  void replicate(Rank& rank);
  void gather_losses(Rank& rank);
  void reduce_gradients(Rank& rank);
  Transfer& transfer(std::string_view label);
  int32_t used_devices() const { return static_cast<int32_t>(chunks_.size()); }

  const TrainingPlan* plan_;
  std::vector<Replica> replicas_;  ///< one a device; all but the first live for a step
  std::vector<Batch> chunks_;      ///< of the used devices
  std::vector<Ticket> arrived_;    ///< by device: its copy of the model is complete
  std::vector<Ticket> computed_;   ///< by device: its loss, then its gradients
  Slice gathered_;                 ///< one loss a used device, on device 0
  Slice loss_;
  Ticket loss_ready_;
  std::vector<Transfer> transfers_;
};

/// The lengths of the chunks that torch.chunk makes of `elements` for `devices`: ceil(n / K) each
/// and the rest; fewer than K where that suffices.
std::vector<int64_t> chunk_lengths(int64_t elements, int64_t devices);

/// "dp", DataParallelStrategy.
StrategyEntry data_parallel();

}  // namespace lockstep
