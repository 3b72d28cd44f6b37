#pragma once

#include <map>
#include <utility>
#include <vector>

#include "model/strategy/exchange/reducer.hpp"
#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

/// torch.distributed.pipelining: its schedules, and DistributedDataParallel around each stage where
/// several pipelines stand side by side.
class TorchPipeline : public Pipeline {
 public:
  TorchPipeline(const TrainingPlan& plan, PipelinePlan pipeline)
      : TorchPipeline(plan, plan, std::move(pipeline)) {}

  std::string_view name() const override { return "pipeline"; }
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Program teardown(Rank& rank) override;
  std::vector<KnownDifference> known_differences() override;

 protected:
  static constexpr std::string_view gradients_reduced = "gradients_reduced";
  /// `computing`: as for Pipeline.
  TorchPipeline(const TrainingPlan& plan, TrainingPlan computing, PipelinePlan pipeline)
      : Pipeline(plan, std::move(computing), std::move(pipeline)) {}

  Program construct(Rank& rank) override;
  /// Makes what each rank holds of the model, on the groups of the mesh.
  virtual void allocate_stages(Rank& rank);
  Program begin_fit(Rank& rank) override;
  std::vector<PipelineStep> training_steps(int32_t in_pipeline) const override;
  Program before_batch(Rank& rank, bool training) override;
  Program before_action(Rank& rank, const PipelineAction& action) override;
  Program before_micro_batches(Rank& rank, const std::vector<Batch>& batches,
                               const StepOptions& options) override;
  void begin_exchange(const PipelineAction& action, const StepOptions& options) override;
  void gradients_ready(Rank& rank, int32_t stage, size_t layer, Ticket done) override;
  /// Whether gradients are divided by the number of micro-batches, and that is not 1.
  bool scales() const { return pipeline_.scales_gradients && shape().micro_batches > 1; }
  /// torch divides all gradients that are there.
  void note_scaling() { scales_twice_ = scales_twice_ || std::exchange(has_gradients_, true); }
  Program end_exchange(Rank& rank) override;
  void finish_gradients(Rank& rank, const StepOptions& options) override;
  /// PipelineStage._prepare_forward_infra makes buffers for all micro-batches.
  bool keeps_received() const override { return true; }

  virtual Program make_groups(Rank& rank);

 private:
  /// DistributedDataParallel around each stage of a rank.
  Program wrap_stages(Rank& rank);
  /// Parameters and buffers of a stage.
  std::vector<Slice> state_of(int32_t stage) const;
  Program meet_neighbours(Rank& rank);
  Program infer_shapes(Rank& rank, const Batch& batch, const StepOptions& options);
  Program run_on_zeros(Rank& rank, int32_t stage, const Batch& batch, StepOptions options);
  Program exchange_shape(Rank& rank, int32_t other, bool sends);
  void scale_gradients(Rank& rank);

  std::map<int32_t, Reducer> reducers_;  ///< by stage, in a fit of several pipelines
  Reducer* reducing_ = nullptr;          ///< whose exchange the backward under way ends
  bool is_training_ = false;             ///< in the step under way
  bool has_gradients_ = false;           ///< of an earlier batch, which are scaled again
  bool scales_twice_ = false;            ///< has done so
  bool has_met_ = false;                 ///< its neighbours
};

/// "pipeline", PipelineStrategy.
StrategyEntry pipeline_parallel();

}  // namespace lockstep
