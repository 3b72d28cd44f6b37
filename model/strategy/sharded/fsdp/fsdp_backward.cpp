// The backward of FSDP1: units are gathered again, freed, and their gradients reduced.
#include <algorithm>

#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"

namespace lockstep {

using namespace fsdp_sites;

Program FullyShardedDataParallel::backward(Rank& rank, const StepOptions& options) {
  const int64_t last = replica_.last_forward();
  const std::vector<BackwardPass> passes = replica_.take_passes(options);
  find_ends_by_age(passes);
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    replica_.turn_to(passes[pass].forward);
    replica_.backward_of_loss(rank, passes[pass].applied_to(options));
    for (const size_t layer : replica_.layers_last_to_first()) {
      co_await begin_backward_of(rank, layer);  // 3. gathered again
      const Ticket done = replica_.backward(rank, layer);
      for (size_t index = units_.size(); index-- > 0;) {  // inner ones before those around them
        Unit& unit = units_[index];
        const bool ends = pass + 1 == passes.size() && unit.ends_at == layer;
        // The root's views are the oldest nodes of the graph: it comes last.
        if (ends && !unit.is_root && !unit.has_reduced) {
          co_await end_backward(rank, unit, done, options.synchronise);  // 4. freed, reduced
        }
      }
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

// The backward of a module begins: it is gathered, and then the one whose backward comes next.
Program FullyShardedDataParallel::begin_backward_of(Rank& rank, size_t layer) {
  for (size_t index = 0; index < units_.size(); ++index) {
    Unit& unit = units_[index];
    if (!backward_reads(unit, layer)) {
      continue;
    }
    if (!unit.state.is_gathered()) {
      co_await unshard(rank, unit, unit.gathered_at);
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
    co_await unshard(rank, next, next.gathered_at);
  }
}

Program FullyShardedDataParallel::end_backward(Rank& rank, Unit& unit, Ticket done,
                                               bool synchronise) {
  unit.has_reduced = true;
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
