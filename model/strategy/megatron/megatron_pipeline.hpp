#pragma once

#include <optional>
#include <vector>

#include "model/strategy/megatron/megatron_arguments.hpp"
#include "model/strategy/megatron/megatron_optimizer.hpp"
#include "model/strategy/pipeline/pipeline.hpp"

namespace lockstep {

/// Megatron-LM's training: its schedules, gradients in contiguous buffers that replicas reduce
/// bucket by bucket, and its optimizers, of which a distributed one holds a part on each replica.
class MegatronPipeline final : public Pipeline {
 public:
  MegatronPipeline(const TrainingPlan& plan, MegatronPlan megatron);

  std::string_view name() const override { return "MegatronStrategy"; }
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  /// Nothing: training_step does so, whatever Lightning counts (MegatronStrategy.training_step).
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  std::vector<HeldParameter> held_parameters() override;
  bool accumulates_without_exchange() const override { return false; }
  const LossScale* loss_scale() const override { return loss_scale_ ? &*loss_scale_ : nullptr; }
  std::vector<KnownDifference> known_differences() override;
  /// Those of one pipeline, and those that divide the positions of its samples.
  Neighbourhoods neighbourhoods_of_ranks(const RanksOfRun& run) override;

 private:
  Program construct(Rank& rank) override;
  Program begin_fit(Rank& rank) override;
  std::vector<PipelineStep> training_steps(int32_t in_pipeline) const override;
  Program before_micro_batches(Rank& rank, const std::vector<Batch>& batches,
                               const StepOptions& options) override;
  void before_layer(Rank& rank, size_t layer) override;
  void gradients_ready(Rank& rank, int32_t stage, size_t layer, Ticket done) override;
  void finish_gradients(Rank& rank, const StepOptions& options) override;
  void average_loss(Rank& rank) override;
  /// recv_forward and recv_backward allocate for each message (p2p_communication.py), and nothing
  /// refers to it once the micro-batch's backward has ended (schedules.py).
  bool keeps_received() const override { return false; }
  StepOptions as_computed(const StepOptions& options) const override;
  Bytes bytes_of_own_state() const override;
  bool writes_parameter(size_t parameter) const override;

  Program make_groups(Rank& rank);
  Program make_context_groups(Rank& rank);
  Program make_model_groups(Rank& rank);
  Program make_expert_groups(Rank& rank);
  bool counts(size_t parameter) const;
  void make_buffers();
  void reduce_norm_gradients(Rank& rank);

  MegatronOptions megatron_;
  TensorRanks context_{};    ///< with whom this rank divides the positions of its samples
  ExpertRanks experts_{};    ///< with whom it divides experts
  DataRanks expert_data_{};  ///< that hold the same ones
  std::optional<MegatronBuffers> buffers_;
  std::optional<MegatronOptimizer> optimizer_;  ///< in a fit
  std::optional<LossScale> loss_scale_;         ///< under fp16
  std::optional<GroupId> model_group_;          ///< ranks that hold one replica, if several do
};

}  // namespace lockstep
