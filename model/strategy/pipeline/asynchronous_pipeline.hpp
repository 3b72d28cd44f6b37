#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/pipeline/weight_versions.hpp"

namespace lockstep {

/// PipeDream and PipeDream-2BW: micro-batches stay under way when a step ends, and each stage
/// updates its weights once a batch has come back through it, which on stage s of S is S - 1 - s
/// micro-batches after its forward. A batch of the trainer is a minibatch of PipeDream, and the
/// micro-batches of one are those whose gradients 2BW adds up.
///
/// Whoever needs weights that have seen all batches (an evaluation, a checkpoint, the end) empties
/// the pipeline first, which every rank does at the same place.
class AsynchronousPipeline final : public Pipeline {
 public:
  /// Throws ArgumentProblem for what cannot be.
  AsynchronousPipeline(const TrainingPlan& plan, PipelinePlan pipeline);

  std::string_view name() const override { return "pipeline"; }
  /// The update of the batch that was begun last, which comes when the batch has come back.
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  /// Nothing: each stage clears its gradients behind its own update.
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Program teardown(Rank& rank) override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<KnownDifference> known_differences() override;
  std::optional<Staleness> staleness() const override { return staleness_; }

 private:
  /// Of a micro-batch under way in this stage.
  struct UnderWay {
    int64_t batch = 0;
    int64_t version = 0;  ///< of the weights: updates that they have seen
  };

  Program construct(Rank& rank) override;
  Program begin_fit(Rank& rank) override;
  std::vector<PipelineStep> training_steps(int32_t) const override { return {}; }
  Program before_batch(Rank& rank, bool training) override;
  Program before_micro_batches(Rank& rank, const std::vector<Batch>& batches,
                               const StepOptions& options) override;
  void begin_action(const PipelineAction& action) override;
  void end_action(Rank& rank, const PipelineAction& action) override;
  void gradients_ready(Rank&, int32_t, size_t, Ticket) override {}
  void finish_gradients(Rank& rank, const StepOptions& options) override;
  StepOptions as_computed(const StepOptions& options) const override;
  /// As many as are under way at once.
  bool keeps_received() const override { return true; }

  AsynchronousOrder order() const;
  /// The version by which a batch is computed that comes to this stage now.
  int64_t version_for(int64_t batch) const;
  Program drain(Rank& rank);
  void update_what_came_back(Rank& rank);
  void update(Rank& rank, const UpdateOptions& options);
  /// Whether a backward, or a forward that is still to come, computes by this version.
  bool is_needed(int64_t version) const;
  /// The oldest that is.
  int64_t oldest_needed() const;

  WeightVersions versions_;
  std::map<int32_t, UnderWay> under_way_;  ///< by number of the micro-batch
  std::deque<UpdateOptions> asked_;        ///< of batches that have not come back
  int64_t batches_ = 0;                    ///< that have begun
  int64_t empty_since_ = 0;                ///< batches before the pipeline was empty last
  int64_t backwards_ = 0;                  ///< of micro-batches, in this stage
  int64_t updates_asked_ = 0;
  bool is_training_ = false;
  bool is_draining_ = false;
  Staleness staleness_{};
};

}  // namespace lockstep
