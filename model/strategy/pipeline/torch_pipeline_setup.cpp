// What torch's pipelines do before their first step: groups, wrappers, and what neighbours tell
// each other.
#include <algorithm>
#include <memory>
#include <utility>

#include "model/strategy/data_parallel/ddp_construction.hpp"
#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/exchange/collective_parts.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"
#include "model/strategy/pipeline/asynchronous_pipeline.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "model/strategy/pipeline/sharded_pipeline.hpp"
#include "model/strategy/pipeline/torch_pipeline.hpp"
#include "model/strategy/sharded/fsdp/fsdp2_sites.hpp"
#include "model/strategy/strategy_steps.hpp"
#include "model/strategy/tensor/tensor_arguments.hpp"

namespace lockstep {

namespace {

/// The pickled shapes and types of a stage's output, as broadcast between neighbours.
constexpr int64_t typical_shape_bytes = 104;

}  // namespace

// A script cuts the modules on the mesh, which it has made by then.
Program TorchPipeline::construct(Rank& rank) {
  const bool needs_mesh = pipeline_.mesh.tensor_ranks > 1 || pipeline_.shards;
  if (needs_mesh) {
    co_await make_groups(rank);
  }
  hold_stages();
  allocate_stages(rank);
  allocate_losses(rank);
  if (!needs_mesh) {
    co_await make_groups(rank);
  }
}

// All ranks have drawn the same model (seed_everything).
void TorchPipeline::allocate_stages(Rank& rank) { replica_.allocate(rank); }

Program TorchPipeline::begin_fit(Rank& rank) {
  if (pipeline_.mesh.replicas > 1) {
    co_await wrap_stages(rank);
  }
}

std::vector<PipelineStep> TorchPipeline::training_steps(int32_t in_pipeline) const {
  const PipelineSchedule schedule = make_pipeline_schedule(pipeline_.kind, shape());
  return pipeline_steps(pipeline_.kind, schedule, in_pipeline);
}

// The dimensions of the mesh in their order, where they have more than one rank: pipelines, ranks
// with the same layers, ranks that compute a stage together. Every rank makes all groups.
Program TorchPipeline::make_groups(Rank& rank) {
  if (pipeline_.mesh.columns() > 1) {
    group_ = co_await make_dimension(rank, shape().ranks, pipeline_.mesh.columns());
  }
  co_await make_replica_groups(rank);
  co_await make_tensor_groups(rank);
}

// DistributedDataParallel around each stage of a rank.
Program TorchPipeline::wrap_stages(Rank& rank) {
  for (const int32_t stage : own_stages_) {
    ReducingGroup group = replicas_;
    group.first_layer = layers_of(stage).first;
    group.end_layer = layers_of(stage).end;
    co_await verify_parameters(rank, replica_, group, pipeline_.mesh.replicas);
    co_await broadcast_coalesced(rank, group.group, state_of(stage), group.first_rank,
                                 site_id(ddp_sites::send_parameters));
    Reducer& reducer = reducers_.try_emplace(stage, replica_, ReducerOptions{}).first->second;
    reducer.reduce_within(group);
    reducer.allocate(rank);
  }
}

// A weight that another stage defines has the same values here.
std::vector<Slice> TorchPipeline::state_of(int32_t stage) const {
  std::vector<Slice> state;
  for (const Replica::Parameter& parameter : replica_.parameters()) {
    if (layers_of(stage).holds(parameter.place.layer)) {
      state.push_back(parameter.tensor.value);
    }
  }
  for (const Replica::Buffer& buffer : replica_.buffers()) {
    if (layers_of(stage).holds(buffer.layer)) {
      state.push_back(buffer.value);
    }
  }
  return state;
}

// One element each way between neighbours, so that NCCL makes their connections in one order.
Program TorchPipeline::meet_neighbours(Rank& rank) {
  const SiteId site = site_id(pipeline_sites::meet_neighbours);
  std::vector<Slice> elements;
  GroupedCall calls(rank, {communication_stream, {}, site});
  for (const int32_t stage : own_stages_) {
    for (const int32_t other : {stage - 1, stage + 1}) {
      const bool is_there = other >= 0 && other < shape().stages();
      if (!is_there || shape().rank_of(other) == place_.in_pipeline) {
        continue;
      }
      const int32_t peer = place_.rank_in_world(shape().rank_of(other), pipeline_.mesh);
      for (const bool sends : {other > stage, other < stage}) {
        elements.push_back(rank.allocate(Purpose::communication, DType::fp32, 1));
        sends ? calls.send(group_, elements.back(), peer)
              : calls.receive(group_, elements.back(), peer);
      }
    }
  }
  if (!elements.empty()) {
    const Ticket met = calls.submit();
    co_await rank.settle(met);
  }
  for (const Slice& element : elements) {
    rank.release(element);
  }
}

// Down the pipeline, stage by stage (stage.py, _shape_inference).
Program TorchPipeline::infer_shapes(Rank& rank, const Batch& batch, const StepOptions& options) {
  for (const int32_t stage : own_stages_) {
    if (stage > 0 && !is_own(stage - 1)) {
      co_await exchange_shape(rank, stage - 1, false);
    }
    co_await run_on_zeros(rank, stage, batch, options);
    if (!is_last(stage) && !is_own(stage + 1)) {
      co_await exchange_shape(rank, stage + 1, true);
    }
  }
}

// Without gradients, so that nothing is kept, and in the mode of the module: batch norms of a
// training take the zeros for a batch.
Program TorchPipeline::run_on_zeros(Rank& rank, int32_t stage, const Batch& batch,
                                    StepOptions options) {
  const Network& network = replica_.network();
  const StageLayers& layers = layers_of(stage);
  bool has_batch_norm = false;
  for (size_t layer = layers.first; layer < layers.end; ++layer) {
    has_batch_norm = has_batch_norm || network.layers[layer].kind == LayerKind::batch_norm;
  }
  options.training = options.training && has_batch_norm;
  Replica::Part part;
  const DType given = network.input_dtype_of(0);
  part.input = stage > 0
                   ? boundary_before(rank, stage, Purpose::input)
                   : rank.allocate(Purpose::input,
                                   is_floating(given) ? replica_.plan().parameter_dtype : given,
                                   batch.size() * elements_of(network.input_of(0)));
  elementwise(rank, Kernel::fill, {}, {*part.input}, 0,
              {replica_.compute(), {}, site_id(pipeline_sites::send_shapes)});
  replica_.begin_part(rank, batch, options, part);
  co_await run_layers(rank, layers, options);
  replica_.end_part(rank, options);
  replica_.forget_forward(rank);
  rank.release(*part.input);
}

// How many bytes, then the bytes (send_object_list).
Program TorchPipeline::exchange_shape(Rank& rank, int32_t other, bool sends) {
  const CommunicationOptions options{
      communication_stream, {}, site_id(pipeline_sites::send_shapes)};
  const int32_t peer = place_.rank_in_world(shape().rank_of(other), pipeline_.mesh);
  for (const auto& [dtype, elements] :
       {std::pair(DType::int64, int64_t{1}), std::pair(DType::uint8, typical_shape_bytes)}) {
    const Slice part = rank.allocate(Purpose::communication, dtype, elements);
    const Ticket done = sends ? rank.send(group_, part, peer, 0, options)
                              : rank.receive(group_, part, peer, 0, options);
    co_await rank.settle(done);
    rank.release(part);
  }
}

Program TorchPipeline::teardown(Rank& rank) {
  for (auto& [stage, reducer] : reducers_) {
    co_await reducer.settle(rank);
    reducer.release(rank);
  }
  reducers_.clear();
}

namespace {

std::optional<CutNetwork> cut_for_pipeline(const Network& whole, const StrategyArguments& arguments,
                                           int32_t world_size, int32_t) {
  try {
    return cut_by_plan(whole, arguments, tensor_ranks_of(arguments, world_size));
  } catch (const ArgumentProblem&) {
    return std::nullopt;  // refused where the strategy is made
  }
}

}  // namespace

StrategyEntry pipeline_parallel() {
  StrategyEntry entry;
  entry.name = "pipeline";
  entry.class_name = "PipelineStrategy";
  entry.traits.backward_in_forward = true;
  entry.arguments = {pipeline_arguments().begin(), pipeline_arguments().end()};
  add_steps(pipeline_sites::every_step, entry.sites);
  add_steps(ddp_sites::every_step, entry.sites);
  add_steps(fsdp2_sites::every_step, entry.sites);
  entry.make = [](const TrainingPlan& plan,
                  const StrategyArguments& arguments) -> std::unique_ptr<Strategy> {
    PipelinePlan pipeline = pipeline_plan_of(plan, arguments);
    if (is_asynchronous(pipeline.kind)) {
      return std::make_unique<AsynchronousPipeline>(plan, std::move(pipeline));
    }
    if (pipeline.shards) {
      return std::make_unique<ShardedPipeline>(plan, std::move(pipeline));
    }
    return std::make_unique<TorchPipeline>(plan, std::move(pipeline));
  };
  add_steps(tensor_sites::every_step, entry.sites);
  entry.membership = pipeline_membership;
  entry.cut = cut_for_pipeline;
  entry.ideal_bubble = ideal_bubble;
  entry.trainer_limits = pipeline_limits;
  entry.newest_feature = pipeline_feature;
  return entry;
}

}  // namespace lockstep
