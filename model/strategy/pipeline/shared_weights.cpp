#include "model/strategy/pipeline/shared_weights.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"

namespace lockstep {

namespace {

// By parameter: the ranks of a pipeline with a layer that reads it, ascending.
std::map<size_t, std::set<int32_t>> readers_of(const Replica& replica,
                                               const PipelinePlan& pipeline) {
  std::map<size_t, std::set<int32_t>> readers;
  for (size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    const StageLayers& layers = pipeline.stages[stage];
    for (size_t layer = layers.first; layer < layers.end; ++layer) {
      for (const size_t parameter : replica.parameters_of(layer)) {
        readers[parameter].insert(pipeline.shape.rank_of(static_cast<int32_t>(stage)));
      }
    }
  }
  return readers;
}

/// The rank of a pipeline whose stage has the layer.
int32_t owner_of(size_t layer, const PipelinePlan& pipeline) {
  for (size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    if (pipeline.stages[stage].holds(layer)) {
      return pipeline.shape.rank_of(static_cast<int32_t>(stage));
    }
  }
  return 0;
}

}  // namespace

Task<bool> SharedWeights::make_groups(Rank& rank, const Replica& replica,
                                      const PipelinePlan& pipeline) {
  const PipelinePlace here = PipelinePlace::of(rank.id(), pipeline.mesh);
  bool some = false;
  for (const auto& [parameter, readers] : readers_of(replica, pipeline)) {
    if (readers.size() < 2) {
      continue;
    }
    some = true;
    for (int32_t column = 0; column < pipeline.mesh.columns(); ++column) {
      const PipelinePlace other = PipelinePlace::of(column, pipeline.mesh);
      std::vector<int64_t> members;
      for (const int32_t reader : readers) {
        members.push_back(other.rank_in_world(reader, pipeline.mesh));
      }
      const Rank::NewGroup made = rank.new_group(
          world_group, members, {communication_stream, {}, site_id(pipeline_sites::make_groups)});
      co_await rank.settle(made.ready);
      if (other.replica == here.replica && other.in_tensor == here.in_tensor &&
          readers.contains(here.in_pipeline)) {
        const size_t layer = replica.parameters()[parameter].place.layer;
        own_.push_back({parameter, made.group, owner_of(layer, pipeline) == here.in_pipeline});
      }
    }
  }
  co_return some;
}

bool SharedWeights::is_copy(size_t parameter) const {
  return std::ranges::any_of(own_, [&](const Shared& shared) {
    return shared.parameter == parameter && !shared.is_defined_here;
  });
}

std::vector<Bytes> SharedWeights::add_up(Rank& rank, Replica& replica,
                                         const ReducingGroup* replicas, int32_t replica_count) {
  std::vector<Bytes> sent;
  const SiteId site = site_id(pipeline_sites::tie_gradients);
  for (const Shared& shared : own_) {
    const Slice gradient = replica.parameters()[shared.parameter].tensor.gradient;
    if (gradient.buffer == no_buffer) {
      continue;  // a frozen weight, on every rank
    }
    if (replicas != nullptr && !shared.is_defined_here) {
      const Ticket scaled =
          elementwise(rank, Kernel::scale, {gradient}, {gradient}, 1.0 / replica_count, {}, site);
      const Ticket averaged = rank.all_reduce(replicas->group, gradient, Reduction::sum,
                                              {replicas->on, {scaled}, site});
      rank.event({replica.compute(), {averaged}, site});
      sent.push_back(gradient.bytes());
    }
    const Ticket filled = rank.event({replica.compute(), {}, site});
    const Ticket added = rank.all_reduce(shared.group, gradient, Reduction::sum,
                                         {communication_stream, {filled}, site});
    rank.event({replica.compute(), {added}, site});
    sent.push_back(gradient.bytes());
  }
  return sent;
}

}  // namespace lockstep
