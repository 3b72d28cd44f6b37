// The backward of FSDP1: units are gathered again, freed, and their gradients reduced.
#include <algorithm>

#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"

namespace lockstep {

Program FullyShardedDataParallel::backward(Rank& rank, const StepOptions& options) {
  const int64_t last = replica_.last_forward();
  const std::vector<BackwardPass> passes = replica_.take_passes(options);
  find_ends_by_age(passes);
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    replica_.turn_to(passes[pass].forward);
    segment_ = nullptr;
    replica_.backward_of_loss(rank, passes[pass].applied_to(options));
    for (const size_t layer : replica_.layers_last_to_first()) {
      co_await begin_backward_of(rank, layer);  // 3. gathered again
      const Ticket done = replica_.backward(rank, layer);
      end_recomputation(rank);
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
    unit.state.settle_gradients(rank, division(rank), site_id(fsdp_sites::take_gradients));
  }
}

// The backward of a module begins: it is gathered, and then the one whose backward comes next.
Program FullyShardedDataParallel::begin_backward_of(Rank& rank, size_t layer) {
  const CheckpointedSegment* const segment = replica_.network().segment_of(layer);
  segment_begins_ = segment != nullptr && segment != segment_;
  segment_ = segment;
  for (size_t index = 0; index < units_.size(); ++index) {
    Unit& unit = units_[index];
    const bool runs_again = segment_begins_ && is_freed_by_recomputation(unit);
    if (!backward_reads(unit, layer) ||
        (segment != nullptr && !segment_begins_ && !unit.module.contains(layer))) {
      continue;
    }
    if (!unit.state.is_gathered()) {
      co_await unshard(rank, unit, unit.gathered_at);
    }
    unit.state.await_gathered(rank, site_id(fsdp_sites::wait_for_unit));
    if (!runs_again && !std::exchange(unit.in_backward, true) &&
        options_.backward_prefetch == FullyShardedOptions::BackwardPrefetch::before) {
      co_await prefetch_backward(rank, index);
    }
  }
}

// A forward that runs again frees a unit where it ends, as the first one did, and the unit's own
// backward gathers it once more. The second forward stops where everything that was saved is
// there again (torch.utils.checkpoint, early_stop): within the last module that saves something.
bool FullyShardedDataParallel::is_freed_by_recomputation(const Unit& unit) const {
  if (segment_ == nullptr || unit.is_root || !options_.frees_after_forward() ||
      unit.module.first < segment_->first || unit.module.last >= segment_->last) {
    return false;
  }
  const std::vector<Layer>& layers = replica_.network().layers;
  return std::any_of(
      layers.begin() + static_cast<int64_t>(unit.module.last) + 1,
      layers.begin() + static_cast<int64_t>(segment_->last) + 1, [](const Layer& layer) {
        const Saves& saves = layer.saves;
        return saves.input || saves.output || saves.elements > 0 || saves.fixed > Bytes{};
      });
}

void FullyShardedDataParallel::end_recomputation(Rank& rank) {
  for (Unit& unit : units_) {
    if (segment_begins_ && is_freed_by_recomputation(unit)) {
      reshard(rank, unit);
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
                                     site_id(fsdp_sites::reduce_replicas)};
  unit.state.reduce(rank, shard_exchange(fsdp_sites::reduce_unit),
                    replica_group_ || !sharded ? &across : nullptr, division(rank), done);
}

}  // namespace lockstep
