// What a pipeline does before its first step: groups, stages, and what neighbours tell each other.
#include <algorithm>

#include "model/strategy/data_parallel/ddp_construction.hpp"
#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/exchange/collective_parts.hpp"
#include "model/strategy/local_model/tensor_sites.hpp"
#include "model/strategy/pipeline/megatron_steps.hpp"
#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "model/strategy/strategy_steps.hpp"
#include "model/strategy/tensor/tensor_arguments.hpp"

namespace lockstep {

namespace {

/// The pickled shapes and types of a stage's output, as broadcast between neighbours.
constexpr int64_t typical_shape_bytes = 256;

}  // namespace

Program Pipeline::setup(Rank& rank, Stage stage) {
  if (!replica_.is_allocated()) {
    place_ = PipelinePlace::of(rank.id(), pipeline_.mesh);
    const bool is_cut = pipeline_.mesh.tensor_ranks > 1;
    if (is_megatron()) {
      co_await make_megatron_groups(rank);
    } else if (is_cut) {
      co_await make_groups(rank);  // a script cuts the modules on the mesh
    }
    allocate(rank);
    if (!is_cut && !is_megatron()) {
      co_await make_groups(rank);
    }
    shares_weights_ = co_await shared_.make_groups(rank, replica_, pipeline_);
  }
  if (stage != Stage::fit) {
    co_return;
  }
  replica_.forget_optimizer(rank);
  if (is_megatron()) {
    begin_megatron_fit(rank);
  } else if (pipeline_.mesh.replicas > 1) {
    co_await wrap_stages(rank);
  }
}

// The place of a rank in its pipeline says what it does.
std::vector<int64_t> Pipeline::kinds_of_ranks(const RanksOfRun& run) {
  return plan().numerics ? std::vector<int64_t>()
                         : std::vector<int64_t>(static_cast<size_t>(run.all), 0);
}

std::vector<int32_t> Pipeline::neighbourhoods_of_ranks(const RanksOfRun& run) {
  std::vector<int32_t> replicas;
  for (int32_t rank = 0; rank < run.all; ++rank) {
    replicas.push_back(PipelinePlace::of(rank, pipeline_.mesh).replica);
  }
  return replicas;
}

void Pipeline::allocate(Rank& rank) {
  own_stages_ = shape().stages_of(place_.in_pipeline);
  std::vector<bool> held(replica_.network().layers.size());
  for (const int32_t stage : own_stages_) {
    for (size_t layer = layers_of(stage).first; layer < layers_of(stage).end; ++layer) {
      held[layer] = true;
    }
  }
  replica_.hold_only(held);
  if (pipeline_.mesh.tensor_ranks > 1) {
    tensor_.ranks = pipeline_.mesh.tensor_ranks;
    tensor_.index = place_.in_tensor;
    replica_.share_layers(tensor_);
  }
  if (is_megatron()) {
    make_buffers();
  }
  if (is_megatron() && pipeline_.megatron->use_distributed_optimizer) {
    replica_.allocate_in(rank, buffers_->allocate_parameters(rank));
  } else {
    replica_.allocate(rank);  // all ranks have drawn the same model (seed_everything)
  }
  losses_ = rank.allocate(Purpose::metric, DType::fp32, shape().micro_batches);
  loss_ = rank.allocate(Purpose::metric, DType::fp32, 1);
  if (!pipeline_.loss_on_all_stages) {
    rank.write(loss_, Values::of(DType::fp32, {-1}));
  }
  if (is_megatron()) {
    training_steps_ = megatron_steps(shape(), place_.in_pipeline);
  } else {
    const PipelineSchedule schedule = make_pipeline_schedule(pipeline_.kind, shape());
    training_steps_ = pipeline_steps(pipeline_.kind, schedule, place_.in_pipeline);
  }
  evaluation_steps_ = steps_by_slots(forward_schedule(shape()), place_.in_pipeline);
}

// The dimensions of the mesh in their order, where they have more than one rank: pipelines, ranks
// with the same layers, ranks that compute a stage together. Every rank makes all groups.
Program Pipeline::make_groups(Rank& rank) {
  const PipelineMesh& mesh = pipeline_.mesh;
  if (mesh.columns() > 1) {
    group_ = co_await make_dimension(rank, shape().ranks, mesh.columns());
  }
  if (mesh.replicas > 1) {
    replicas_.group = co_await make_dimension(rank, mesh.replicas, mesh.tensor_ranks);
    replicas_.first_rank = place_.in_pipeline * mesh.columns() + place_.in_tensor;
    replicas_.on = stream(queue::first_group);
  }
  if (mesh.tensor_ranks > 1) {
    tensor_.group = co_await make_dimension(rank, mesh.tensor_ranks, 1);
    tensor_.on = stream(queue::first_group + 1);
  }
}

// The groups of `ranks` ranks that are `step` apart; the one of this rank.
Task<GroupId> Pipeline::make_dimension(Rank& rank, int32_t ranks, int32_t step) {
  GroupId own = world_group;
  for (int32_t first = 0; first < rank.world_size(); ++first) {
    if (first / step % ranks != 0) {
      continue;
    }
    std::vector<int64_t> members;
    for (int32_t i = 0; i < ranks; ++i) {
      members.push_back(first + i * step);
    }
    const Rank::NewGroup made = rank.new_group(
        world_group, members, {communication_stream, {}, site_id(pipeline_sites::make_groups)});
    co_await rank.settle(made.ready);
    if (std::ranges::find(members, rank.id()) != members.end()) {
      own = made.group;
    }
  }
  co_return own;
}

// DistributedDataParallel around each stage of a rank.
Program Pipeline::wrap_stages(Rank& rank) {
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
std::vector<Slice> Pipeline::state_of(int32_t stage) const {
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
Program Pipeline::meet_neighbours(Rank& rank) {
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

// Down the pipeline, stage by stage.
Program Pipeline::send_shapes(Rank& rank) {
  for (const int32_t stage : own_stages_) {
    if (stage > 0 && !is_own(stage - 1)) {
      co_await exchange_shape(rank, stage - 1, false);
    }
    if (!is_last(stage) && !is_own(stage + 1)) {
      co_await exchange_shape(rank, stage + 1, true);
    }
  }
}

// How many bytes, then the bytes (send_object_list).
Program Pipeline::exchange_shape(Rank& rank, int32_t other, bool sends) {
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

Program Pipeline::teardown(Rank& rank) {
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
  entry.make = [](const TrainingPlan& plan, const StrategyArguments& arguments) {
    return std::make_unique<Pipeline>(plan, pipeline_plan_of(plan, arguments));
  };
  add_steps(tensor_sites::every_step, entry.sites);
  entry.membership = pipeline_membership;
  entry.cut = cut_for_pipeline;
  entry.ideal_bubble = ideal_bubble;
  return entry;
}

}  // namespace lockstep
