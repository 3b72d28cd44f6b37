#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/exchange/reducer.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/pipeline/micro_batch_periods.hpp"
#include "model/strategy/pipeline/passages.hpp"
#include "model/strategy/pipeline/pipeline_plan.hpp"
#include "model/strategy/pipeline/shared_weights.hpp"

namespace lockstep {

/// Every rank holds some stages of the model and computes them for one micro-batch after the other,
/// in the order of a schedule. Frameworks differ in what goes around that: their groups and
/// schedules, how replicas side by side reduce gradients, and how parameters are updated.
class Pipeline : public DistributedStrategy {
 public:
  Program setup(Rank& rank, Stage stage) override;
  /// Of a training: forward and backward of all micro-batches.
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  /// Nothing: forward() has run it.
  Program backward(Rank& rank, const StepOptions& options) override;

  std::vector<Transfer> transfers_per_step() const override { return transfers_.all(); }
  /// The mean of the micro-batches' losses.
  Slice loss() const override { return loss_; }
  Ticket loss_ready() const override { return loss_ready_; }
  std::optional<MissingLoss> missing_loss() const override;
  Replica& replica() override { return replica_; }
  std::vector<HeldParameter> held_parameters() override;
  Task<WrittenBytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  /// Those of one pipeline.
  Neighbourhoods neighbourhoods_of_ranks(const RanksOfRun& run) override;

 protected:
  /// `computing`: the plan in the types that the replica has.
  Pipeline(const TrainingPlan& plan, TrainingPlan computing, PipelinePlan pipeline);

  // What frameworks do around the way of micro-batches.
  /// Groups, stages and their memory, by hold_stages(), allocate_losses() and make_dimension().
  virtual Program construct(Rank& rank) = 0;
  virtual Program begin_fit(Rank& rank) = 0;
  /// Of a rank of its pipeline.
  virtual std::vector<PipelineStep> training_steps(int32_t in_pipeline) const = 0;
  virtual Program before_batch(Rank& rank, bool training);
  /// The batch has been cut into these.
  virtual Program before_micro_batches(Rank& rank, const std::vector<Batch>& batches,
                                       const StepOptions& options) = 0;
  /// Before a computation waits for its messages.
  virtual Program before_action(Rank& rank, const PipelineAction& action);
  /// A step of one of the last three kinds.
  virtual void share_stage(Rank& /*rank*/, const PipelineStep& /*step*/) {}
  /// Around each layer of a forward.
  virtual void before_layer(Rank& /*rank*/, size_t /*layer*/) {}
  virtual void after_layer(Rank& /*rank*/, size_t /*layer*/) {}
  /// Before each layer of a backward. False: its gradients are not computed.
  virtual bool before_backward_of_layer(Rank& /*rank*/, const PipelineAction& /*action*/,
                                        size_t /*layer*/, BackwardHalf /*half*/) {
    return true;
  }
  /// Before a backward that gives gradients of weights; those of the layers follow, last to first.
  virtual void begin_exchange(const PipelineAction& /*action*/, const StepOptions& /*options*/) {}
  virtual void gradients_ready(Rank& rank, int32_t stage, size_t layer, Ticket done) = 0;
  virtual Program end_exchange(Rank& rank);
  /// All micro-batches of a training step have been through.
  virtual void finish_gradients(Rank& rank, const StepOptions& options) = 0;
  /// Around each computation of a micro-batch.
  virtual void begin_action(const PipelineAction& /*action*/) {}
  virtual void end_action(Rank& /*rank*/, const PipelineAction& /*action*/) {}
  /// On the ranks of the last stage.
  virtual void average_loss(Rank& /*rank*/) {}
  /// What a micro-batch has received stays where it is for the same one of the next batch. Else its
  /// memory is freed behind the backward, or the forward of an evaluation.
  virtual bool keeps_received() const = 0;
  virtual StepOptions as_computed(const StepOptions& options) const { return options; }
  /// Of an optimizer beside that of the replica, which this rank writes into a checkpoint.
  virtual Bytes bytes_of_own_state() const { return {}; }
  /// Whether this rank writes it, of those that hold the same.
  virtual bool writes_parameter(size_t /*parameter*/) const { return place_.replica == 0; }

  const PipelineShape& shape() const { return pipeline_.shape; }
  bool is_last(int32_t stage) const { return stage + 1 == shape().stages(); }
  bool is_own(int32_t stage) const { return shape().rank_of(stage) == place_.in_pipeline; }
  const StageLayers& layers_of(int32_t stage) const {
    return pipeline_.stages[static_cast<size_t>(stage)];
  }
  /// Whether the last of the stage's backwards of a step has begun.
  bool is_in_last_backward(int32_t stage) const { return backwards_left_.at(stage) == 0; }
  void hold_stages();
  void allocate_losses(Rank& rank);
  /// The groups of `ranks` ranks that are `step` apart; the one of this rank.
  Task<GroupId> make_dimension(Rank& rank, int32_t ranks, int32_t step);
  Program make_replica_groups(Rank& rank);
  Program make_tensor_groups(Rank& rank);

  /// The layers of a stage, in a forward that has begun. The host waits for the numbers of tokens
  /// where ranks divide experts.
  Program run_layers(Rank& rank, const StageLayers& layers, const StepOptions& options);
  /// Memory for what crosses the boundary before a stage.
  Slice boundary_before(Rank& rank, int32_t stage, Purpose purpose) const;

  /// Actions and messages in this order; `batches` by micro-batch, for forwards. Where some of them
  /// repeat themselves in `periods`, the world may leave them out.
  Program run(Rank& rank, const std::vector<PipelineStep>& steps, const std::vector<Batch>& batches,
              const StepOptions& options,
              const std::optional<MicroBatchPeriods>& periods = std::nullopt);
  /// That many micro-batches were left out: those under way are later ones now.
  virtual void rename_micro_batches(int32_t /*later*/) {}

  PipelinePlan pipeline_;
  TrainingPlan computing_plan_;
  Replica replica_;
  PipelinePlace place_{};
  std::vector<int32_t> own_stages_;
  GroupId group_ = world_group;  ///< of this pipeline
  ReducingGroup replicas_{};     ///< of ranks with the same stages, all of them
  TensorRanks tensor_{};         ///< with whom this rank computes its stages
  SharedWeights shared_;
  bool shares_weights_ = false;  ///< some stages do, over ranks
  Slice loss_;
  Ticket loss_ready_{};
  std::vector<PipelineStep> training_steps_;   ///< of the next batch
  std::optional<int64_t> micro_batch_size_{};  ///< of the first: shapes are fixed by it
  Transfers transfers_;

 private:
  // The way of micro-batches (pipeline.cpp).
  std::vector<Batch> micro_batches_of(const Batch& batch);
  Program compute(Rank& rank, const PipelineAction& action, const Batch& batch,
                  const StepOptions& options);
  Program forward_of(Rank& rank, const PipelineAction& action, const Batch& batch,
                     const StepOptions& options);
  Program backward_of(Rank& rank, const PipelineAction& action, const StepOptions& options);
  void end_backward(Rank& rank, const PipelineAction& action);
  SentMessages exchange(Rank& rank, const std::vector<PipelineMessage>& messages);
  void begin_receives(Rank& rank, const std::vector<PipelineMessage>& messages);
  void wait_for(Rank& rank, const std::vector<SentMessages>& sent);
  void end_evaluation(Rank& rank, const PassageKey& key);

  // What the world leaves out of a step (pipeline_periods.cpp).
  size_t behind_left_out(Rank& rank, const std::vector<PipelineStep>& steps, size_t at,
                         const MicroBatchPeriods& periods, const StepOptions& options);

  // The end of a step (pipeline_update.cpp).
  void finish_step(Rank& rank, const StepOptions& options);
  void share_loss(Rank& rank, bool with_all_stages);
  void forget_passages(Rank& rank);

  std::vector<PipelineStep> evaluation_steps_;         ///< made with the first evaluation
  std::optional<MicroBatchPeriods> training_periods_;  ///< of training_steps_
  std::map<int32_t, int32_t> backwards_left_;          ///< by stage, of the step under way
  Passages passages_;
  Slice losses_;             ///< one a micro-batch
  bool trains_ = false;      ///< the batch under way
  bool knows_loss_ = false;  ///< of another rank; else its own is -1
};

}  // namespace lockstep
