// fully_shard around the stages of a pipeline: what it is called with.
#include <fmt/core.h>

#include "model/strategy/pipeline/pipeline_plan.hpp"

namespace lockstep {

namespace {

void check_shards(const TrainingPlan& plan, const PipelinePlan& pipeline,
                  const FullyShard2Options& shards) {
  const auto refuse_unmodelled = [](bool is_there, const std::string& what, const char* argument,
                                    const char* remedy) {
    if (is_there) {
      throw UnmodelledArgument(what + " is not modelled", argument, remedy);
    }
  };
  refuse_unmodelled(is_asynchronous(pipeline.kind),
                    fmt::format("fully_shard with {}", name_of(pipeline.kind)), "fully_shard",
                    "leave it out, or use 1F1B");
  refuse_unmodelled(shards.reshard_to > 0, "a number for reshard_after_forward in a pipeline",
                    "fully_shard.reshard_after_forward", "write true or false");
  refuse_unmodelled(!shards.wrap.ignored.empty(), "`ignored_params` in a pipeline",
                    "fully_shard.ignored_params", "leave it out");
  WrapPolicy by_stage;
  for (const StageLayers& stage : pipeline.stages) {
    by_stage.modules.push_back({stage.first, stage.end - 1});
  }
  for (const TiedOverModules& tied : tied_over_modules(*plan.network, by_stage)) {
    refuse_unmodelled(
        true,
        fmt::format("fully_shard around stages of which two share a weight (`{}` and "
                    "`{}`)",
                    plan.network->layers[tied.owner].name, plan.network->layers[tied.other].name),
        "fully_shard", "leave it out, or train a model without tied weights");
  }
}

}  // namespace

std::optional<FullyShard2Options> pipeline_shards(const TrainingPlan& plan,
                                                  const StrategyArguments& arguments,
                                                  const PipelinePlan& pipeline) {
  if (!is_fully_sharded(arguments)) {
    return std::nullopt;
  }
  FullyShardCaller caller{"PipelineStrategy"};
  caller.replicas = plan.world_size > 0 ? pipeline.mesh.replicas : 0;
  caller.tensor_ranks = pipeline.mesh.tensor_ranks;
  caller.meshes_beside_tensor = true;
  const FullyShard2Options shards = fully_shard_options(plan, arguments, caller);
  check_shards(plan, pipeline, shards);
  return shards;
}

}  // namespace lockstep
