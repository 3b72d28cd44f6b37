// The backward of FSDP1: units are gathered again, freed, and their gradients reduced.
#include <algorithm>

#include "model/strategy/sharded/fsdp.hpp"
#include "model/strategy/sharded/fsdp_sites.hpp"

namespace lockstep {

using namespace fsdp_sites;

Program FullyShardedDataParallel::backward(Rank& rank, const StepOptions& options) {
  const int64_t last = replica_.last_forward();
  const std::vector<BackwardPass> passes = replica_.take_passes(options);
  count_gradients(passes);
  for (const BackwardPass& pass : passes) {
    replica_.turn_to(pass.forward);
    replica_.backward_of_loss(rank, pass.applied_to(options));
    for (const size_t layer : replica_.layers_last_to_first()) {
      co_await begin_backward_of(rank, layer);  // 3. gathered again
      const Ticket done = replica_.backward(rank, layer);
      co_await end_backward_of(rank, layer, done, options.synchronise);  // 4. freed, reduced
    }
    replica_.forget_forward(rank);
  }
  replica_.return_to(last);
  for (Unit& unit : units_) {
    if (unit.is_root && unit.state.has_whole_gradients()) {
      co_await end_backward(rank, unit, {}, options.synchronise);
    }
    unit.in_backward = false;
    if (options.synchronise || options_.frees_after_forward()) {
      reshard(rank, unit);
    }
  }
  for (Unit& unit : units_) {  // 5. the optimizer sees what was reduced
    unit.state.settle_gradients(rank, division(rank), site_id(take_gradients));
  }
}

// How many layers have yet to give each unit gradients, over all forwards behind this backward.
void FullyShardedDataParallel::count_gradients(const std::vector<BackwardPass>& passes) {
  for (Unit& unit : units_) {
    unit.waits_for = 0;
  }
  const int64_t last = replica_.last_forward();
  for (const BackwardPass& pass : passes) {
    replica_.turn_to(pass.forward);
    for (const size_t layer : replica_.layers_last_to_first()) {
      for (const size_t parameter : replica_.parameters_of(layer)) {
        if (replica_.wants_gradient(replica_.parameters()[parameter])) {
          ++units_[unit_of_[parameter]].waits_for;
        }
      }
    }
    replica_.turn_to(last);
  }
}

// The backward of a module begins: it is gathered, and then the one whose backward comes next.
Program FullyShardedDataParallel::begin_backward_of(Rank& rank, size_t layer) {
  const CheckpointedSegment* segment = replica_.network().segment_of(layer);
  const auto is_needed = [&](const Unit& unit) {
    const bool has_ended = unit.in_backward && unit.waits_for <= 0;
    if (has_ended) {
      return false;  // the rest of its layers have no parameters
    }
    return unit.module.contains(layer) ||
           (segment != nullptr && unit.module.first <= segment->last &&
            unit.module.last >= segment->first && !unit.in_backward);
  };
  for (size_t index = 0; index < units_.size(); ++index) {
    Unit& unit = units_[index];
    if (!is_needed(unit)) {
      continue;
    }
    if (!unit.state.is_gathered()) {
      co_await unshard(rank, unit);
    }
    unit.state.await_gathered(rank, site_id(wait_for_unit));
    if (!std::exchange(unit.in_backward, true) &&
        options_.backward_prefetch == FullyShardedOptions::BackwardPrefetch::before) {
      co_await prefetch_backward(rank, index);
    }
  }
}

// The unit before this one in the order in which forwards ended.
Program FullyShardedDataParallel::prefetch_backward(Rank& rank, size_t unit) {
  const auto found = std::find(forward_order_.begin(), forward_order_.end(), unit);
  if (found == forward_order_.end() || found == forward_order_.begin()) {
    co_return;
  }
  Unit& next = units_[*std::prev(found)];
  if (!next.state.is_gathered() && !next.in_backward) {
    co_await unshard(rank, next);
  }
}

Program FullyShardedDataParallel::end_backward_of(Rank& rank, size_t layer, Ticket done,
                                                  bool synchronise) {
  for (const size_t parameter : replica_.parameters_of(layer)) {
    Unit& unit = units_[unit_of_[parameter]];
    if (!replica_.wants_gradient(replica_.parameters()[parameter]) || --unit.waits_for > 0) {
      continue;
    }
    if (!unit.is_root) {  // the root's views are the oldest nodes of the graph: it comes last
      co_await end_backward(rank, unit, done, synchronise);
    }
  }
}

Program FullyShardedDataParallel::end_backward(Rank& rank, Unit& unit, Ticket done,
                                               bool synchronise) {
  if (synchronise || options_.frees_after_forward()) {
    reshard(rank, unit);
    if (options_.backward_prefetch == FullyShardedOptions::BackwardPrefetch::after) {
      co_await prefetch_backward(rank, static_cast<size_t>(&unit - units_.data()));
    }
  }
  if (!synchronise) {
    co_return;  // no_sync: the whole gradients stay on this rank
  }
  const bool sharded = unit.state.is_sharded();
  const ShardedUnit::Exchange across{replica_group_.value_or(world_group),
                                     site_id(reduce_replicas)};
  unit.state.reduce(rank, shard_exchange(reduce_unit),
                    replica_group_ || !sharded ? &across : nullptr, division(rank), done);
}

}  // namespace lockstep
