#pragma once

#include <map>
#include <vector>

#include "model/strategy/exchange/reducer.hpp"
#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

/// torch.distributed.pipelining: its schedules, and DistributedDataParallel around each stage where
/// several pipelines stand side by side.
class TorchPipeline final : public Pipeline {
 public:
  TorchPipeline(const TrainingPlan& plan, PipelinePlan pipeline)
      : Pipeline(plan, plan, std::move(pipeline)) {}

  std::string_view name() const override { return "pipeline"; }
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Program teardown(Rank& rank) override;
  std::vector<KnownDifference> known_differences() override;

 private:
  Program construct(Rank& rank) override;
  Program begin_fit(Rank& rank) override;
  std::vector<PipelineStep> training_steps() const override;
  Program before_batch(Rank& rank, bool training) override;
  Program before_micro_batches(Rank& rank, bool training) override;
  void begin_exchange(const PipelineAction& action, const StepOptions& options) override;
  void gradients_ready(Rank& rank, int32_t stage, size_t layer, Ticket done) override;
  Program end_exchange(Rank& rank) override;
  void finish_gradients(Rank& rank, const StepOptions& options) override;
  std::string_view size_argument() const override { return "n_microbatches"; }

  Program make_groups(Rank& rank);
  /// DistributedDataParallel around each stage of a rank.
  Program wrap_stages(Rank& rank);
  /// Parameters and buffers of a stage.
  std::vector<Slice> state_of(int32_t stage) const;
  Program meet_neighbours(Rank& rank);
  Program send_shapes(Rank& rank);
  Program exchange_shape(Rank& rank, int32_t other, bool sends);
  void scale_gradients(Rank& rank);

  std::map<int32_t, Reducer> reducers_;  ///< by stage, in a fit of several pipelines
  Reducer* reducing_ = nullptr;          ///< whose exchange the backward under way ends
  bool has_gradients_ = false;           ///< of an earlier batch, which are scaled again
  bool scales_twice_ = false;            ///< has done so
  bool has_met_ = false;                 ///< its neighbours
};

/// "pipeline", PipelineStrategy.
StrategyEntry pipeline_parallel();

}  // namespace lockstep
