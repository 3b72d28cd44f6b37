#pragma once

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/local_model/step_over_ranks.hpp"
#include "model/strategy/tensor/tensor_mesh.hpp"

namespace lockstep {

/// One replica whose layers all ranks compute together (torch.distributed.tensor.parallel): every
/// rank holds and updates its parts of the parameters, and all see the same batch.
class TensorParallel final : public DistributedStrategy {
 public:
  explicit TensorParallel(const TrainingPlan& plan);

  std::string_view name() const override { return "ModelParallelStrategy"; }
  Program setup(Rank& rank, Stage stage) override;
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;

  Slice loss() const override { return replica_.loss(); }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }
  std::vector<HeldParameter> held_parameters() override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  bool accumulates_without_exchange() const override { return false; }

 private:
  void clip_by_norm(Rank& rank, const UpdateOptions& options);
  std::vector<PartOfTensor> parts_of_step(const OptimizerPlan& optimizer);
  /// Sums a gradient of terms as often as the optimizer uses it.
  void sum_for_operands(Rank& rank, const OptimizerPlan& optimizer, size_t parameter);
  Slice sum_of_terms(Rank& rank, const Slice& gradient, SiteId site);

  Replica replica_;
  TensorMesh mesh_{};
  Ticket loss_ready_{};
  bool is_set_up_ = false;
};

/// What a rank holds of a parameter that is cut: one entry for each stretch of the whole, where
/// values are computed. `held`: of its part.
std::vector<HeldParameter> in_whole(const Replica& replica, const TensorRanks& ranks,
                                    const HeldParameter& held);

}  // namespace lockstep
