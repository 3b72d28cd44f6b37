#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/strategy/argument_table.hpp"
#include "model/strategy/pipeline/pipeline_steps.hpp"
#include "model/strategy/pipeline/stage_cuts.hpp"
#include "model/strategy/pipeline_bubble.hpp"
#include "model/strategy/plan.hpp"
#include "model/strategy/sharded/fsdp/fully_shard_options.hpp"
#include "model/strategy/torch_feature.hpp"
#include "model/strategy/trainer_limits.hpp"
#include "model/strategy/trainer_membership.hpp"

namespace lockstep {

/// The dimensions of a device mesh behind the first, which is the pipeline: init_device_mesh((pp,
/// dp, tp)).
struct PipelineMesh {
  int32_t replicas = 1;      ///< pipelines side by side, between which gradients are averaged
  int32_t tensor_ranks = 1;  ///< neighbours that compute the layers of a stage together
  int32_t columns() const { return replicas * tensor_ranks; }
};

/// Where a rank stands in it: rank = (in_pipeline x replicas + replica) x tensor_ranks + in_tensor.
struct PipelinePlace {
  int32_t in_pipeline = 0;
  int32_t replica = 0;
  int32_t in_tensor = 0;

  static PipelinePlace of(int32_t rank, const PipelineMesh& mesh) {
    return {rank / mesh.columns(), rank / mesh.tensor_ranks % mesh.replicas,
            rank % mesh.tensor_ranks};
  }
  /// Of the rank with other stages that has the same place in the other dimensions.
  int32_t rank_in_world(int32_t other_in_pipeline, const PipelineMesh& mesh) const {
    return (other_in_pipeline * mesh.replicas + replica) * mesh.tensor_ranks + in_tensor;
  }
};

/// What the arguments of PipelineStrategy come to for a number of ranks.
struct PipelinePlan {
  PipelineScheduleKind kind = PipelineScheduleKind::one_forward_one_backward;
  PipelineShape shape;
  std::vector<StageLayers> stages;  ///< layers of each, in the order of the network
  bool scales_gradients = true;     ///< divides them by the number of micro-batches
  bool loss_on_all_stages = true;   ///< of evaluations
  bool training_loss_on_all_stages = true;
  bool vertical_sync = false;  ///< of PipeDream
  PipelineMesh mesh{};
  /// fully_shard around each stage, in place of DistributedDataParallel.
  std::optional<FullyShard2Options> shards{};
};

ArgumentRows pipeline_arguments();

/// The ranks of a pipeline, and its stages on each, without the network: what `membership` needs.
/// Throws ArgumentProblem.
PipelineShape pipeline_shape_of(const StrategyArguments& arguments, int32_t world_size);
/// Throws ArgumentProblem.
int32_t tensor_ranks_of(const StrategyArguments& arguments, int32_t world_size);
/// How many stages the argument `split` makes where it is a list of layers; nothing where it says
/// how to cut, into any number of stages.
std::optional<int32_t> stages_in_split(const StrategyArguments& arguments);
/// By the argument `split`. Throws ArgumentProblem for what cannot be.
std::vector<StageLayers> stages_of_split(const StrategyArguments& arguments, const Network& network,
                                         int32_t stages, const EndsInBlocks& ends = {});
/// The arguments `fully_shard.*`, for a pipeline whose stages and mesh are there; nothing: there
/// are none. Throws ArgumentProblem for what cannot be.
std::optional<FullyShard2Options> pipeline_shards(const TrainingPlan& plan,
                                                  const StrategyArguments& arguments,
                                                  const PipelinePlan& pipeline);
/// Throws ArgumentProblem for what cannot be.
PipelinePlan pipeline_plan_of(const TrainingPlan& plan, const StrategyArguments& arguments);
/// The part of a step in which a rank idles by the schedule alone, if stages take alike, a backward
/// twice as long as a forward, and messages no time. Nothing: there is one rank. Throws
/// ArgumentProblem.
std::optional<PipelineBubble> ideal_bubble(const StrategyArguments& arguments, int32_t world_size);
/// Of asynchronous schedules; the others have none.
TrainerLimits limits_of(PipelineScheduleKind kind);
TrainerLimits pipeline_limits(const StrategyArguments& arguments);
/// The newest of what a schedule of torch needs. Throws ArgumentProblem.
std::optional<TorchFeature> pipeline_feature(const StrategyArguments& arguments);
/// Ranks of one pipeline get the same samples.
TrainerMembership pipeline_membership(const StrategyArguments& arguments, const Place& place);

}  // namespace lockstep
