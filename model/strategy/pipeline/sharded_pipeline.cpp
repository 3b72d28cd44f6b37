#include "model/strategy/pipeline/sharded_pipeline.hpp"

#include <algorithm>
#include <utility>

#include "model/strategy/sharded/fsdp/unit_sharding.hpp"
#include "model/strategy/tensor/tensor_parallel.hpp"

namespace lockstep {

ShardedPipeline::ShardedPipeline(const TrainingPlan& plan, PipelinePlan pipeline)
    : TorchPipeline(plan, computing_in(plan, pipeline.shards->param_dtype), std::move(pipeline)),
      stages_(replica_, *pipeline_.shards, plan.parameter_dtype) {}

// Before the first step

// The dimension of the replicas is one of those that shard, or two: of ranks with the same parts,
// and of those with the others (torchtitan's dp_replicate and dp_shard).
Program ShardedPipeline::make_groups(Rank& rank) {
  const PipelineMesh& mesh = pipeline_.mesh;
  const int32_t given = pipeline_.shards->shard_ranks;
  ranks_.shards = given > 0 ? given : mesh.replicas;
  ranks_.replicas = mesh.replicas / ranks_.shards;
  ranks_.index = place_.replica % ranks_.shards;
  if (mesh.columns() > 1) {
    group_ = co_await make_dimension(rank, shape().ranks, mesh.columns());
  }
  if (ranks_.replicas > 1) {
    ranks_.replica =
        co_await make_dimension(rank, ranks_.replicas, ranks_.shards * mesh.tensor_ranks);
  }
  if (ranks_.shards > 1) {
    ranks_.shard = co_await make_dimension(rank, ranks_.shards, mesh.tensor_ranks);
  }
  co_await make_tensor_groups(rank);
}

void ShardedPipeline::allocate_stages(Rank& rank) {
  ranks_.tensor = tensor_;
  replica_.state().allocate_without_parameters(rank);
  for (const int32_t stage : own_stages_) {
    stages_.add_stage(rank, ranks_, stage, layers_of(stage));
  }
}

Program ShardedPipeline::begin_fit(Rank& rank) {
  stages_.forget_optimizer(rank);
  co_return;
}

// What is alike in all pipelines, and in ranks that compute layers together, differs by parts.
std::vector<int64_t> ShardedPipeline::kinds_of_ranks(const RanksOfRun& run) {
  const int32_t given = pipeline_.shards->shard_ranks;
  std::vector<int64_t> kinds = TorchPipeline::kinds_of_ranks(run);
  if (given > 0 && given != pipeline_.mesh.replicas) {
    return {};  // ranks with the same parts meet across neighbourhoods
  }
  const std::vector<int64_t> parts =
      kinds_of_parts(replica_, *pipeline_.shards, pipeline_.stages, pipeline_.mesh.replicas);
  for (size_t rank = 0; rank < kinds.size(); ++rank) {
    const PipelinePlace place = PipelinePlace::of(static_cast<int32_t>(rank), pipeline_.mesh);
    kinds[rank] += 2 * parts[static_cast<size_t>(place.replica)];
  }
  return kinds;
}

// A step

Program ShardedPipeline::before_micro_batches(Rank& rank, const std::vector<Batch>& batches,
                                              const StepOptions& options) {
  stages_.begin_step(rank);
  co_await TorchPipeline::before_micro_batches(rank, batches, options);
}

void ShardedPipeline::share_stage(Rank& rank, const PipelineStep& step) {
  switch (step.kind) {
    case PipelineStep::Kind::gather_stage: stages_.gather(rank, step.action.stage); break;
    case PipelineStep::Kind::free_stage: stages_.free(rank, step.action.stage); break;
    default: reduce_stage(rank, step.action.stage); break;
  }
}

void ShardedPipeline::begin_action(const PipelineAction& action) {
  if (action.work == PipelineWork::weight_gradient && action.stage > 0) {
    stages_.find_weights_again(action.stage, action.micro_batch);
  } else if (action.work != PipelineWork::forward) {
    stages_.begin_backward(action.stage, action.micro_batch);
  }
}

bool ShardedPipeline::before_backward_of_layer(Rank& rank, const PipelineAction& action,
                                               size_t layer, BackwardHalf half) {
  if (half == BackwardHalf::weights) {
    return stages_.finds_weights(action.micro_batch, layer);
  }
  stages_.enter_backward(rank, layer);
  return true;
}

void ShardedPipeline::gradients_ready(Rank& rank, int32_t, size_t layer, Ticket) {
  stages_.leave_backward(rank, layer);
}

void ShardedPipeline::end_action(Rank& rank, const PipelineAction& action) {
  if (action.work != PipelineWork::forward) {
    stages_.end_backward(rank, action.stage);
  }
}

void ShardedPipeline::reduce_stage(Rank& rank, int32_t stage) {
  const double factor = scales() ? 1.0 / shape().micro_batches : 1;
  for (const Bytes bytes : stages_.reduce_gradients(rank, stage, factor)) {
    transfers_.add(gradients_reduced, bytes);
  }
}

// torch reduces in every step: there is no accumulation over several. Schedules of single stages do
// so when all messages have been sent.
void ShardedPipeline::finish_gradients(Rank& rank, const StepOptions&) {
  for (const int32_t stage : own_stages_) {
    if (is_single_stage(pipeline_.kind)) {
      reduce_stage(rank, stage);
    }
  }
  if (scales()) {
    note_scaling();
  }
}

// The update

Program ShardedPipeline::optimizer_step(Rank& rank, const UpdateOptions& options) {
  co_await stages_.optimizer_step(rank, options,
                                  shape().ranks > 1 ? std::optional(group_) : std::nullopt);
  transfers_.end_step();
}

Program ShardedPipeline::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  stages_.zero_gradients(rank, optimizer, set_to_none);
  co_await TorchPipeline::zero_gradients(rank, optimizer, set_to_none);
}

std::vector<KnownDifference> ShardedPipeline::known_differences() {
  std::vector<KnownDifference> known = TorchPipeline::known_differences();
  if (stages_.has_lost_gradients()) {
    known.push_back(
        {"torch looks for a stage's weights among the parameters that its modules have before a "
         "backward of its input; those that the forward before has freed it does not find, and "
         "their gradients of that micro-batch are lost",
         "set reshard_after_forward: false, or use a schedule without separate backwards "
         "(1F1B, Interleaved1F1B)"});
  }
  return known;
}

std::vector<HeldParameter> ShardedPipeline::held_parameters() {
  std::vector<HeldParameter> held;
  for (const HeldParameter& part : stages_.held_parameters()) {
    for (const HeldParameter& stretch : in_whole(replica_, tensor_, part)) {
      held.push_back(stretch);
    }
  }
  return held;
}

// Every rank writes its parts; of those with the same ones the first.
Task<WrittenBytes> ShardedPipeline::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                    SiteId site) {
  const bool writes = place_.replica < ranks_.shards;
  const Bytes bytes = writes ? stages_.bytes_of_parts(!request.weights_only) : Bytes{};
  co_await write_file(rank, bytes, request, rank.place().local_world_size, site);
  co_return bytes;
}

}  // namespace lockstep
