// What a pipeline does before its first step: groups, stages, and what neighbours tell each other.
#include "model/strategy/data_parallel/ddp_construction.hpp"
#include "model/strategy/data_parallel/ddp_sites.hpp"
#include "model/strategy/exchange/collective_parts.hpp"
#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"
#include "model/strategy/strategy_steps.hpp"

namespace lockstep {

namespace {

/// The pickled shapes and types of a stage's output, as broadcast between neighbours.
constexpr int64_t typical_shape_bytes = 256;

}  // namespace

Program Pipeline::setup(Rank& rank, Stage stage) {
  if (!replica_.is_allocated()) {
    allocate(rank);
    co_await make_groups(rank);
    shares_weights_ = co_await shared_.make_groups(rank, replica_, pipeline_);
  }
  if (stage != Stage::fit) {
    co_return;
  }
  replica_.forget_optimizer(rank);
  if (pipeline_.replicas > 1) {
    co_await wrap_stages(rank);
  }
}

void Pipeline::allocate(Rank& rank) {
  place_ = PipelinePlace::of(rank.id(), pipeline_.replicas);
  own_stages_ = shape().stages_of(place_.in_pipeline);
  std::vector<bool> held(replica_.network().layers.size());
  for (const int32_t stage : own_stages_) {
    for (size_t layer = layers_of(stage).first; layer < layers_of(stage).end; ++layer) {
      held[layer] = true;
    }
  }
  replica_.hold_only(held);
  replica_.allocate(rank);  // all ranks have drawn the same model (seed_everything)
  losses_ = rank.allocate(Purpose::metric, DType::fp32, shape().micro_batches);
  loss_ = rank.allocate(Purpose::metric, DType::fp32, 1);
  if (!pipeline_.loss_on_all_stages) {
    rank.write(loss_, Values::of(DType::fp32, {-1}));
  }
  const PipelineSchedule schedule = make_pipeline_schedule(pipeline_.kind, shape());
  training_steps_ = pipeline_steps(pipeline_.kind, schedule, place_.in_pipeline);
  evaluation_steps_ = steps_by_slots(forward_schedule(shape()), place_.in_pipeline);
}

// The pipelines first, then the ranks with the same stages: the dimensions of the mesh in their
// order. Every rank makes all of them.
Program Pipeline::make_groups(Rank& rank) {
  if (pipeline_.replicas == 1) {
    co_return;
  }
  const auto make = [&](int32_t first, int32_t count, int32_t step) {
    std::vector<int64_t> members;
    for (int32_t i = 0; i < count; ++i) {
      members.push_back(first + i * step);
    }
    return rank.new_group(world_group, members,
                          {communication_stream, {}, site_id(pipeline_sites::make_groups)});
  };
  for (int32_t replica = 0; replica < pipeline_.replicas; ++replica) {
    const Rank::NewGroup made = make(replica, shape().ranks, pipeline_.replicas);
    co_await rank.settle(made.ready);
    group_ = replica == place_.replica ? made.group : group_;
  }
  for (int32_t other = 0; other < shape().ranks; ++other) {
    const int32_t first = other * pipeline_.replicas;
    const Rank::NewGroup made = make(first, pipeline_.replicas, 1);
    co_await rank.settle(made.ready);
    if (other == place_.in_pipeline) {
      replicas_ = {made.group, first, stream(queue::first_group)};
    }
  }
}

// DistributedDataParallel around each stage of a rank.
Program Pipeline::wrap_stages(Rank& rank) {
  for (const int32_t stage : own_stages_) {
    ReducingGroup group = replicas_;
    group.first_layer = layers_of(stage).first;
    group.end_layer = layers_of(stage).end;
    co_await verify_parameters(rank, replica_, group, pipeline_.replicas);
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
      const int32_t peer = place_.rank_in_world(shape().rank_of(other), pipeline_.replicas);
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
  const int32_t peer = place_.rank_in_world(shape().rank_of(other), pipeline_.replicas);
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
  entry.membership = pipeline_membership;
  entry.ideal_bubble = ideal_bubble;
  return entry;
}

}  // namespace lockstep
