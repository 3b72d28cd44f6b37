#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/strategy/data_parallel/distributed.hpp"
#include "model/strategy/exchange/reducer.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/megatron/megatron_optimizer.hpp"
#include "model/strategy/pipeline/pipeline_plan.hpp"
#include "model/strategy/pipeline/shared_weights.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

/// Every rank holds some stages of the model and computes them for one micro-batch after the other,
/// in the order of a schedule (torch.distributed.pipelining). Several pipelines side by side
/// average the gradients of each stage, as DistributedDataParallel around it does.
class Pipeline final : public DistributedStrategy {
 public:
  Pipeline(const TrainingPlan& plan, PipelinePlan pipeline);

  std::string_view name() const override { return is_megatron() ? "MegatronStrategy" : "pipeline"; }
  Program setup(Rank& rank, Stage stage) override;
  /// Of a training: forward and backward of all micro-batches.
  Program forward(Rank& rank, const Batch& batch, const StepOptions& options) override;
  /// Nothing: forward() has run it.
  Program backward(Rank& rank, const StepOptions& options) override;
  Program optimizer_step(Rank& rank, const UpdateOptions& options) override;
  Program zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) override;
  Program teardown(Rank& rank) override;

  std::vector<Transfer> transfers_per_step() const override { return transfers_.all(); }
  /// The mean of the micro-batches' losses.
  Slice loss() const override { return loss_; }
  Ticket loss_ready() const override { return loss_ready_; }
  Replica& replica() override { return replica_; }
  std::vector<HeldParameter> held_parameters() override;
  std::vector<KnownDifference> known_differences() override;
  Task<Bytes> save_checkpoint(Rank& rank, CheckpointRequest request, SiteId site) override;
  std::vector<int64_t> kinds_of_ranks(const RanksOfRun& run) override;
  /// Those of one pipeline.
  std::vector<int32_t> neighbourhoods_of_ranks(const RanksOfRun& run) override;
  bool accumulates_without_exchange() const override { return !is_megatron(); }

 private:
  /// A micro-batch in a stage of this rank: what it got, and what it will be asked for.
  struct Passage {
    int64_t forward = 0;                ///< Replica::last_forward()
    std::optional<Slice> activation{};  ///< received for it
    std::optional<Slice> gradient{};    ///< of its output, received
    Slice output{};                     ///< what the next stage gets
    Slice input_gradient{};             ///< what the stage before gets
  };
  /// Messages under way, and memory that is freed behind them.
  struct Sent {
    Ticket done{};
    std::vector<Slice> gradients{};
  };
  using PassageKey = std::pair<int32_t, int32_t>;  ///< stage, micro-batch

  bool is_megatron() const { return pipeline_.megatron.has_value(); }
  const PipelineShape& shape() const { return pipeline_.shape; }
  bool is_last(int32_t stage) const { return stage + 1 == shape().stages(); }
  const StageLayers& layers_of(int32_t stage) const {
    return pipeline_.stages[static_cast<size_t>(stage)];
  }

  // Construction (pipeline_setup.cpp).
  void allocate(Rank& rank);
  Program make_groups(Rank& rank);
  Task<GroupId> make_dimension(Rank& rank, int32_t ranks, int32_t step);
  Program wrap_stages(Rank& rank);
  /// Parameters and buffers of a stage.
  std::vector<Slice> state_of(int32_t stage) const;
  Program meet_neighbours(Rank& rank);
  Program send_shapes(Rank& rank);
  Program exchange_shape(Rank& rank, int32_t other, bool sends);

  // The way of micro-batches (pipeline.cpp).
  std::vector<Batch> micro_batches_of(const Batch& batch);
  Program run(Rank& rank, const std::vector<PipelineStep>& steps, const std::vector<Batch>& batches,
              const StepOptions& options);
  Program compute(Rank& rank, const PipelineAction& action, const Batch& batch,
                  const StepOptions& options);
  void forward_of(Rank& rank, const PipelineAction& action, const Batch& batch,
                  const StepOptions& options);
  Program backward_of(Rank& rank, const PipelineAction& action, const StepOptions& options);
  void end_backward(Rank& rank, const PipelineAction& action);
  /// The stage's, where the backward that comes is the one whose end exchanges gradients.
  Reducer* exchange_in(const PipelineAction& action, const StepOptions& options);
  Sent exchange(Rank& rank, const std::vector<PipelineMessage>& messages);
  void wait_for(Rank& rank, const std::vector<Sent>& sent);
  /// Memory for what crosses the boundary before a stage.
  Slice boundary_before(Rank& rank, int32_t stage, Purpose purpose) const;
  bool is_own(int32_t stage) const { return shape().rank_of(stage) == place_.in_pipeline; }
  void release_output(Rank& rank, Passage& passage) const;

  // The end of a step (pipeline_update.cpp).
  Program finish_step(Rank& rank, const StepOptions& options);
  void scale_gradients(Rank& rank);
  void share_loss(Rank& rank);
  void forget_passages(Rank& rank);

  // Megatron-LM's training (pipeline_megatron.cpp).
  Program make_megatron_groups(Rank& rank);
  void make_buffers();
  void begin_megatron_fit(Rank& rank);
  void finalize_gradients(Rank& rank);
  void reduce_norm_gradients(Rank& rank);
  void average_loss(Rank& rank);
  void megatron_step(Rank& rank, const UpdateOptions& options);
  StepOptions as_computed(const StepOptions& options) const;

  PipelinePlan pipeline_;
  TrainingPlan computing_plan_;  ///< in the types that the replica has
  Replica replica_;
  PipelinePlace place_{};
  std::vector<int32_t> own_stages_;
  std::vector<PipelineStep> training_steps_;
  std::vector<PipelineStep> evaluation_steps_;
  GroupId group_ = world_group;  ///< of this pipeline
  ReducingGroup replicas_{};     ///< of ranks with the same stages, all of them
  TensorRanks tensor_{};         ///< with whom this rank computes its stages
  SharedWeights shared_;
  bool shares_weights_ = false;                 ///< some stages do, over ranks
  std::map<int32_t, Reducer> reducers_;         ///< by stage, in a fit of several pipelines
  std::map<int32_t, int32_t> backwards_left_;   ///< by stage, of the step under way
  std::optional<MegatronBuffers> buffers_;      ///< of Megatron-LM, in place of reducers
  std::optional<MegatronOptimizer> optimizer_;  ///< the same, in a fit
  std::optional<GroupId> model_group_;          ///< ranks that hold one replica, if several do
  std::map<PassageKey, Passage> passages_;
  std::vector<Sent> begun_sends_;
  Slice losses_;  ///< one a micro-batch
  Slice loss_;
  Ticket loss_ready_{};
  std::optional<int64_t> micro_batch_size_{};  ///< of the first: shapes are fixed by it
  bool has_gradients_ = false;                 ///< of an earlier batch, which are scaled again
  bool scales_twice_ = false;                  ///< has done so
  bool has_met_ = false;                       ///< its neighbours
  Transfers transfers_;
};

/// "pipeline", PipelineStrategy.
StrategyEntry pipeline_parallel();

}  // namespace lockstep
