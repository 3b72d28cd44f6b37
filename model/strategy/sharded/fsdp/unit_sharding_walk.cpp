// The way of a forward and of a backward through layers and units.
#include <algorithm>

#include "model/strategy/layout/module_list.hpp"
#include "model/strategy/local_model/forward_of.hpp"
#include "model/strategy/sharded/fsdp/unit_sharding.hpp"

namespace lockstep {

// Forward

Program UnitSharding::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  co_await rank.settle(loss_ready_);  // the host runs at most one step ahead of the device
  forward_order_.clear();
  for (Unit& unit : units_) {
    unit.is_entered = false;
  }
  begin_forward(options);
  // Gathers come after the last optimizer step.
  weights_ready_ = rank.event({compute_stream, {}, site_id(steps_.gather_unit)});
  replica_.begin_forward(rank, batch, options);
  const size_t layers = replica_.network().layers.size();
  const std::vector<size_t> running = running_layers(options);
  size_t next = 0;
  for (size_t layer = 0; layer < layers; ++layer) {
    const bool runs = next < running.size() && running[next] == layer;
    if (runs) {
      co_await enter_units(rank, layer);
      check_forward(layer);
    }
    co_await rank.settle(replica_.announce_tokens(rank, layer, options));
    replica_.forward_layer(rank, layer, options);
    if (const std::optional<Ticket> gathered = replica_.take_gathered()) {
      co_await rank.settle(*gathered);
    }
    if (runs) {
      ++next;
      leave_units(rank, layer, next < running.size() ? running[next] : layers);
    }
  }
  loss_ready_ = replica_.end_forward(rank, options);
  co_await await_routing(rank, replica_, loss_ready_);
}

// Outer units are entered before those in them.
Program UnitSharding::enter_units(Rank& rank, size_t layer) {
  for (Unit& unit : units_) {
    if (!unit.module.contains(layer) || std::exchange(unit.is_entered, true)) {
      continue;
    }
    if (!unit.state.is_gathered()) {
      co_await unshard(rank, unit, layer);
    }
    unit.state.await_gathered(rank, site_id(steps_.wait_for_unit));
    co_await prefetch_forward(rank, unit, layer);
  }
}

void UnitSharding::leave_units(Rank& rank, size_t layer, size_t next_layer) {
  for (size_t index = units_.size(); index-- > 0;) {
    Unit& unit = units_[index];
    if (unit.module.contains(layer) && !unit.module.contains(next_layer)) {
      unit.is_entered = false;
      forward_order_.push_back(index);
      reshard_after_forward(rank, unit);
    }
  }
}

std::vector<size_t> UnitSharding::running_layers(const StepOptions& options) const {
  std::vector<size_t> running;
  for (size_t layer = 0; layer < replica_.network().layers.size(); ++layer) {
    if (replica_.runs(layer, options)) {
      running.push_back(layer);
    }
  }
  return running;
}

void UnitSharding::reshard(Rank& rank, Unit& unit) {
  if (unit.state.is_gathered() && !unit.state.is_whole()) {
    unit.state.free(rank);
  }
}

// Backward

Program UnitSharding::backward(Rank& rank, const StepOptions& options) {
  const int64_t last = replica_.forwards().last();
  const std::vector<BackwardPass> passes = replica_.forwards().take_passes(options);
  for (Unit& unit : units_) {
    unit.in_backward = false;
    unit.has_reduced = false;
    unit.stops_second_forward = false;
    unit.ends_at.reset();
  }
  find_ends(passes);
  for (size_t pass = 0; pass < passes.size(); ++pass) {
    replica_.forwards().turn_to(passes[pass].forward);
    replica_.backward_of_loss(rank, passes[pass].applied_to(options));
    for (const size_t layer : replica_.layers_last_to_first()) {
      co_await begin_layer(rank, layer);
      const Ticket done = replica_.backward(rank, layer);
      if (pass + 1 == passes.size()) {
        co_await end_units_behind(rank, layer, done, options.synchronise);
      }
    }
    replica_.forget_forward(rank);
  }
  replica_.forwards().return_to(last);
  co_await finish_backward(rank, options.synchronise);
}

// With the last layer of a checkpointed segment its forward runs again. If autograd keeps no node
// of what is in the segment but those of the second forward, the backward of the units in it begins
// behind that.
Program UnitSharding::begin_layer(Rank& rank, size_t layer) {
  const std::vector<size_t> again = replica_.begin_recomputation(layer);
  if (again.empty()) {
    co_await begin_units(rank, layer, [](const Unit&) { return true; });
  } else {
    const CheckpointedSegment& segment = *replica_.network().segment_of(layer);
    const bool all_first = !makes_graph_again(segment);
    co_await begin_units(rank, layer,
                         [&](const Unit& unit) { return all_first || !is_inside(unit, segment); });
    co_await run_again(rank, segment, again);
    co_await begin_units(rank, layer, [](const Unit&) { return true; });
  }
  check_backward(layer);
}

// A unit is gathered again where its backward begins, and then the one whose backward comes next.
template <class Chosen>
Program UnitSharding::begin_units(Rank& rank, size_t layer, Chosen is_chosen) {
  for (Unit& unit : units_) {
    if (unit.has_reduced || !unit.module.contains(layer) || !is_chosen(unit)) {
      continue;
    }
    if (!unit.state.is_gathered()) {
      co_await unshard(rank, unit, unit.gathered_at);
    }
    unit.state.await_gathered(rank, site_id(steps_.wait_for_unit));
    if (!std::exchange(unit.in_backward, true)) {
      co_await prefetch_backward(rank, unit);
    }
  }
}

bool UnitSharding::is_inside(const Unit& unit, const CheckpointedSegment& segment) {
  return segment.first <= unit.module.first && unit.module.last <= segment.last &&
         unit.module.last - unit.module.first < segment.last - segment.first;
}

// Units inside of a segment are gathered and freed as in a first forward, and gathered once more
// for their own backward. The second forward stops where everything that was saved is there again
// (torch.utils.checkpoint, early_stop), and does not come to the end of the unit where it does.
Program UnitSharding::run_again(Rank& rank, const CheckpointedSegment& segment,
                                std::vector<size_t> layers) {
  const size_t stop =
      makes_graph_again(segment) ? layers.back() + 1 : last_that_saves(replica_.network(), layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    const size_t layer = layers[i];
    for (Unit& unit : units_) {
      if (is_inside(unit, segment) && unit.module.contains(layer) &&
          !std::exchange(unit.is_entered, true)) {
        if (!unit.state.is_gathered()) {
          co_await unshard(rank, unit, unit.gathered_at);
        }
        unit.state.await_gathered(rank, site_id(steps_.wait_for_unit));
      }
    }
    check_backward(layer);
    replica_.recompute(rank, layer);
    for (size_t index = units_.size(); index-- > 0;) {
      Unit& unit = units_[index];
      if (unit.is_entered && (i + 1 == layers.size() || !unit.module.contains(layers[i + 1]))) {
        unit.is_entered = false;
        unit.stops_second_forward = unit.module.contains(stop);
        if (frees_in_every_forward(unit) && !unit.stops_second_forward) {
          reshard(rank, unit);
        }
      }
    }
  }
}

void UnitSharding::await_settled(Rank& rank, SiteId site) {
  std::vector<Ticket> settled;
  for (Unit& unit : units_) {
    if (const Ticket ticket = unit.state.take_settled()) {
      settled.push_back(ticket);
    }
  }
  if (settled.empty()) {
    return;
  }
  const Ticket waits = rank.event({compute_stream, settled, site});
  if (offload_ != Offload::none) {
    rank.event({place_of_update().on, {waits}, site});
  }
  for (Unit& unit : units_) {
    unit.state.forget_offloaded(rank);
  }
}

UnitSharding::Unit* UnitSharding::next_to_gather(const Unit& unit) {
  const auto index = static_cast<size_t>(&unit - units_.data());
  const auto found = std::ranges::find(forward_order_, index);
  if (found == forward_order_.end() || found == forward_order_.begin()) {
    return nullptr;
  }
  Unit& next = units_[*std::prev(found)];
  return next.state.is_gathered() || next.in_backward ? nullptr : &next;
}

// Autograd works through its nodes from the youngest to the oldest. What hands a unit its gradients
// is as old as its gather: its turn comes behind every layer that ran after that.
void UnitSharding::find_ends(const std::vector<BackwardPass>& passes) {
  const int64_t last = replica_.forwards().last();
  for (Unit& unit : units_) {
    unit.gets_gradients = false;
    unit.has_backward = false;
  }
  for (const BackwardPass& pass : passes) {
    replica_.forwards().turn_to(pass.forward);
    for (const size_t layer : replica_.layers_last_to_first()) {
      for (const size_t parameter : replica_.parameters_of(layer)) {
        if (unit_of_[parameter] == no_unit) {
          continue;
        }
        Unit& unit = units_[unit_of_[parameter]];
        unit.gets_gradients =
            unit.gets_gradients || replica_.wants_gradient(replica_.parameters()[parameter]);
      }
      for (Unit& unit : units_) {
        unit.has_backward = unit.has_backward || unit.module.contains(layer);
        if (layer >= std::min(unit.gathered_at, unit.module.first)) {
          unit.ends_at = layer;
        }
      }
    }
    replica_.forwards().turn_to(last);
  }
  for (Unit& unit : units_) {
    if (!unit.gets_gradients) {
      unit.ends_at.reset();
    }
  }
}

// Inner units before those around them. The root's views are the oldest nodes of the graph: it
// comes when the backward has ended.
Program UnitSharding::end_units_behind(Rank& rank, size_t layer, Ticket done, bool synchronise) {
  for (size_t index = units_.size(); index-- > 0;) {
    Unit& unit = units_[index];
    if (unit.ends_at == layer && !unit.is_root && !unit.has_reduced) {
      co_await end_backward(rank, unit, done, synchronise);
    }
  }
}

}  // namespace lockstep
