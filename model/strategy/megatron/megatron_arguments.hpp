#pragma once

#include <optional>

#include "model/network/tensor_parallel/cut_network.hpp"
#include "model/network/tensor_parallel/expert_cut.hpp"
#include "model/strategy/argument_table.hpp"
#include "model/strategy/megatron/megatron_options.hpp"
#include "model/strategy/pipeline/pipeline_plan.hpp"

namespace lockstep {

ArgumentRows megatron_arguments();

/// The sizes of the mesh: tensor ranks are neighbours, then those that divide the positions of the
/// same samples, then replicas, then pipeline ranks. Throws RefusedArgument where they do not
/// multiply to the ranks.
struct MegatronMesh {
  PipelineShape shape{};
  /// Whose replicas are all ranks with the same parameters, among which gradients are averaged:
  /// Megatron-LM's data-parallel group with context parallelism.
  PipelineMesh mesh{};
  ContextPart context{};
  /// Ranks that divide experts follow one another among those of a stage: neighbours compute an
  /// expert together, then come those with other experts, then those that hold the same.
  ExpertPart experts{};
  int32_t data_ranks() const { return mesh.replicas / context.ranks; }
};
MegatronMesh megatron_mesh_of(const StrategyArguments& arguments, int32_t world_size);
/// What each rank has of the network; nothing: all of it. Throws ArgumentProblem.
std::optional<CutNetwork> megatron_cut_of(const Network& whole, const StrategyArguments& arguments,
                                          int32_t world_size);
/// What the arguments come to.
struct MegatronPlan {
  PipelinePlan pipeline;
  MegatronOptions options;
  int32_t context_ranks = 1;
  ExpertPart experts{};  ///< of its mixtures
};
/// Throws ArgumentProblem for what cannot be.
MegatronPlan megatron_plan_of(const TrainingPlan& plan, const StrategyArguments& arguments);

}  // namespace lockstep
