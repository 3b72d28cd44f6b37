#pragma once

#include <cstdint>
#include <vector>

#include "model/strategy/pipeline/sharded_stages.hpp"
#include "model/strategy/pipeline/torch_pipeline.hpp"

namespace lockstep {

/// torch.distributed.pipelining with fully_shard around each stage, as torchtitan composes them.
class ShardedPipeline final : public TorchPipeline {
 public:
  /// `pipeline`: with shards.
  ShardedPipeline(const TrainingPlan& plan, PipelinePlan pipeline);

  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  std::vector<HeldParameter> held_parameters() override;
  std::vector<KnownDifference> known_differences() override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;

 private:
  Program make_groups(Rank& rank) override;
  void allocate_stages(Rank& rank) override;
  Program begin_fit(Rank& rank) override;
  Program before_micro_batches(Rank& rank, const std::vector<Batch>& batches,
                               const StepOptions& options) override;
  void share_stage(Rank& rank, const PipelineStep& step) override;
  void before_layer(Rank& rank, size_t layer) override { stages_.enter_layer(rank, layer); }
  void after_layer(Rank& rank, size_t layer) override { stages_.leave_layer(rank, layer); }
  void begin_action(const PipelineAction& action) override;
  bool before_backward_of_layer(Rank& rank, const PipelineAction& action, size_t layer,
                                BackwardHalf half) override;
  void begin_exchange(const PipelineAction&, const StepOptions&) override {}
  void gradients_ready(Rank& rank, int32_t stage, size_t layer, Ticket done) override;
  void rename_micro_batches(int32_t later) override { stages_.rename_micro_batches(later); }
  void end_action(Rank& rank, const PipelineAction& action) override;
  void finish_gradients(Rank& rank, const StepOptions& options) override;

  /// perform_reduce_grad().
  void reduce_stage(Rank& rank, int32_t stage);

  ShardedStages stages_;
  ShardingRanks ranks_{};
};

}  // namespace lockstep
