#include "model/strategy/megatron/megatron.hpp"

#include <memory>

#include "model/strategy/local_model/context_sites.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"
#include "model/strategy/megatron/megatron_arguments.hpp"
#include "model/strategy/megatron/megatron_pipeline.hpp"
#include "model/strategy/megatron/megatron_sites.hpp"
#include "model/strategy/megatron/megatron_steps.hpp"
#include "model/strategy/pipeline/message_times.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

std::optional<CutNetwork> cut_for_megatron(const Network& whole, const StrategyArguments& arguments,
                                           int32_t world_size, int32_t) {
  try {
    return megatron_cut_of(whole, arguments, world_size);
  } catch (const ArgumentProblem&) {
    return std::nullopt;  // refused where the strategy is made
  }
}

TrainerMembership membership_in(const StrategyArguments& arguments, const Place& place) {
  TrainerMembership membership = TrainerMembership::of_every_rank(place);
  MegatronMesh mesh;
  try {
    mesh = megatron_mesh_of(arguments, place.world_size);
  } catch (const ArgumentProblem&) {
    return membership;  // the strategy itself refuses them
  }
  const PipelinePlace here = PipelinePlace::of(static_cast<int32_t>(place.rank.value), mesh.mesh);
  membership.batch_size_multiple = mesh.shape.micro_batches;
  membership.fixes_batch_size = true;
  // Ranks that divide positions get the same samples.
  membership.data_parallel_size = mesh.data_ranks();
  membership.data_parallel_index = here.replica / mesh.context.ranks;
  membership.counts_samples =
      here.in_pipeline == 0 && here.in_tensor == 0 && here.replica % mesh.context.ranks == 0;
  return membership;
}

std::optional<PipelineBubble> bubble_of(const StrategyArguments& arguments, int32_t world_size) {
  const PipelineShape shape = megatron_mesh_of(arguments, world_size).shape;
  if (shape.ranks == 1) {
    return std::nullopt;
  }
  // Narayanan et al. 2021: (p - 1) / v slots beside the m of a rank.
  const double idle = (shape.ranks - 1.0) / shape.stages_per_rank;
  std::vector<std::vector<PipelineStep>> steps;
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    steps.push_back(megatron_steps(shape, rank));
  }
  const PipelineDurations usual{};
  const double work =
      shape.stages_per_rank * shape.micro_batches * (usual.forward + usual.backward);
  return PipelineBubble{idle / (shape.micro_batches + idle),
                        1 - work / makespan_with_messages(steps, usual)};
}

}  // namespace

StrategyEntry megatron() {
  StrategyEntry entry;
  entry.name = "MegatronStrategy";
  entry.class_name = "MegatronStrategy";
  entry.traits.backward_in_forward = true;
  entry.traits.groups_experts = true;
  entry.traits.takes_tensor_norms = true;  // megatron_plan_of() says which optimizers it takes
  entry.traits.loss_scaling = LossScaling::of_strategy;
  entry.arguments = {megatron_arguments().begin(), megatron_arguments().end()};
  add_steps(pipeline_sites::every_step, entry.sites);
  add_steps(megatron_sites::every_step, entry.sites);
  add_steps(tensor_sites::every_step, entry.sites);
  add_steps(context_sites::every_step, entry.sites);
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<MegatronPipeline>(plan, megatron_plan_of(plan, arguments));
  };
  entry.membership = membership_in;
  entry.cut = cut_for_megatron;
  entry.ideal_bubble = bubble_of;
  return entry;
}

}  // namespace lockstep
