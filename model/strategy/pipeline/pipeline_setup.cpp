// What a pipeline does before its first step: stages, memory, and groups.
#include <algorithm>

#include "model/network/mixture.hpp"
#include "model/strategy/pipeline/pipeline.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"

namespace lockstep {

Program Pipeline::setup(Rank& rank, Stage stage) {
  if (!replica_.is_allocated()) {
    place_ = PipelinePlace::of(rank.id(), pipeline_.mesh);
    co_await construct(rank);
    training_steps_ = training_steps(place_.in_pipeline);
    // Values differ between micro-batches, and so do the numbers of tokens that experts get.
    if (!plan().numerics && !has_mixtures(replica_.network())) {
      training_periods_ = micro_batch_periods(shape(), training_steps(0), training_steps_);
    }
    shares_weights_ = co_await shared_.make_groups(rank, replica_, pipeline_);
  }
  if (stage == Stage::fit) {
    replica_.forget_optimizer(rank);
    co_await begin_fit(rank);
  }
}

// The place of a rank in its pipeline says what it does; the first of those that compute layers
// together counts more parameters (counts_in_norm).
std::vector<int64_t> Pipeline::kinds_of_ranks(const RanksOfRun& run) {
  std::vector<int64_t> kinds;
  for (int32_t rank = 0; rank < run.all && !plan().numerics; ++rank) {
    kinds.push_back(PipelinePlace::of(rank, pipeline_.mesh).in_tensor == 0 ? 0 : 1);
  }
  return kinds;
}

Neighbourhoods Pipeline::neighbourhoods_of_ranks(const RanksOfRun& run) {
  Neighbourhoods pipelines;
  for (int32_t rank = 0; rank < run.all; ++rank) {
    const PipelinePlace place = PipelinePlace::of(rank, pipeline_.mesh);
    pipelines.of_rank.push_back(static_cast<uint32_t>(place.replica));
    pipelines.columns.push_back(static_cast<uint32_t>(place.in_tensor));
  }
  return pipelines;
}

void Pipeline::hold_stages() {
  own_stages_ = shape().stages_of(place_.in_pipeline);
  std::vector<bool> held(replica_.network().layers.size());
  for (const int32_t stage : own_stages_) {
    for (size_t layer = layers_of(stage).first; layer < layers_of(stage).end; ++layer) {
      held[layer] = true;
    }
  }
  replica_.state().hold_only(held);
  if (pipeline_.mesh.tensor_ranks > 1) {
    tensor_.ranks = pipeline_.mesh.tensor_ranks;
    tensor_.index = place_.in_tensor;
    replica_.state().share_layers(tensor_);
  }
}

void Pipeline::allocate_losses(Rank& rank) {
  losses_ = rank.allocate(Purpose::metric, DType::fp32, shape().micro_batches);
  loss_ = rank.allocate(Purpose::metric, DType::fp32, 1);
  if (!pipeline_.loss_on_all_stages || !pipeline_.training_loss_on_all_stages) {
    rank.write(loss_, Values::of(DType::fp32, {-1}));
  }
}

Program Pipeline::make_replica_groups(Rank& rank) {
  const PipelineMesh& mesh = pipeline_.mesh;
  if (mesh.replicas > 1) {
    replicas_.group = co_await make_dimension(rank, mesh.replicas, mesh.tensor_ranks);
    replicas_.first_rank = place_.in_pipeline * mesh.columns() + place_.in_tensor;
    replicas_.on = stream(queue::first_group);
  }
}

Program Pipeline::make_tensor_groups(Rank& rank) {
  if (pipeline_.mesh.tensor_ranks > 1) {
    tensor_.group = co_await make_dimension(rank, pipeline_.mesh.tensor_ranks, 1);
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

}  // namespace lockstep
