#pragma once

#include <optional>

#include "model/strategy/argument_table.hpp"
#include "model/strategy/megatron/megatron_options.hpp"
#include "model/strategy/pipeline/pipeline_plan.hpp"

namespace lockstep {

ArgumentRows megatron_arguments();

/// The sizes of the mesh: tensor ranks are neighbours, then replicas, then pipeline ranks. Throws
/// RefusedArgument where they do not multiply to the ranks.
struct MegatronMesh {
  PipelineShape shape{};
  PipelineMesh mesh{};
};
MegatronMesh megatron_mesh_of(const StrategyArguments& arguments, int32_t world_size);
/// What the arguments come to.
struct MegatronPlan {
  PipelinePlan pipeline;
  MegatronOptions options;
};
/// Throws ArgumentProblem for what cannot be.
MegatronPlan megatron_plan_of(const TrainingPlan& plan, const StrategyArguments& arguments);

}  // namespace lockstep
