#include "model/strategy/sharded/fsdp/fsdp.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"

namespace lockstep {

namespace {

TrainingPlan computing_in(TrainingPlan plan, const FullyShardedOptions& options) {
  if (options.param_dtype) {
    // Without autocast layers compute in the type of their parameters and inputs.
    plan.activation_dtype = plan.types().is_mixed() ? plan.activation_dtype : *options.param_dtype;
    plan.parameter_dtype = *options.param_dtype;
  }
  return plan;
}

}  // namespace

FullyShardedDataParallel::FullyShardedDataParallel(const TrainingPlan& plan,
                                                   const FullyShardedOptions& options)
    : UnitSharding(plan, computing_in(plan, options),
                   {.gather_unit = fsdp_sites::gather_unit,
                    .wait_for_unit = fsdp_sites::wait_for_unit,
                    .share_norm = fsdp_sites::share_norm,
                    .update = fsdp_sites::update,
                    .zero_gradients = fsdp_sites::zero_gradients,
                    .gather_state = fsdp_sites::gather_state,
                    .make_groups = fsdp_sites::make_groups,
                    .exchange_plans = fsdp_sites::exchange_plans}),
      options_(options) {}

// Construction

Program FullyShardedDataParallel::setup(Rank& rank, Stage stage) {
  if (!std::exchange(has_groups_, true)) {
    replica_.allocate_without_parameters(rank);
    shard_ranks_ = options_.sharding == FullyShardedOptions::Sharding::none ? 1 : rank.world_size();
    if (options_.is_hybrid()) {
      shard_ranks_ =
          options_.shard_ranks > 0 ? options_.shard_ranks : rank.place().local_world_size;
      const Groups groups = co_await make_groups(rank, shard_ranks_);
      shard_group_ = groups.shard;
      replica_group_ = groups.replica;
    }
    offload_ = options_.cpu_offload ? Offload::replacing_gradients : Offload::none;
    const DType gathered = computing_plan().parameter_dtype;
    make_units(rank, options_.wrap,
               {plan().parameter_dtype, gathered, options_.reduce_dtype.value_or(gathered)},
               shard_ranks_ == 1 ? 0 : rank.id() % shard_ranks_,
               [&](const std::vector<size_t>& parameters) {
                 return layout_of(parameters, rank.world_size());
               });
    if (options_.sync_module_states) {
      co_await send_states(rank);
    }
  }
  if (stage == Stage::fit) {
    for (Unit& unit : units_) {
      unit.state.forget_optimizer(rank);
    }
  }
}

// With use_orig_params every tensor begins at an address that 16 divides.
ShardLayout FullyShardedDataParallel::layout_of(const std::vector<size_t>& parameters,
                                                int32_t ranks) const {
  std::vector<int64_t> sizes;
  for (const size_t index : parameters) {
    sizes.push_back(elements_of(index));
  }
  constexpr int64_t alignment_bytes = 16;
  const int64_t size = size_of(plan().parameter_dtype);
  if (!options_.use_orig_params) {
    return ShardLayout::flat(sizes, shard_ranks_);
  }
  // Aligned parameters are padded for all ranks also where they are not cut.
  const bool is_cut = options_.sharding != FullyShardedOptions::Sharding::none;
  return ShardLayout::flat(sizes, shard_ranks_, std::max<int64_t>(1, alignment_bytes / size),
                           is_cut ? 1 : ranks);
}

// sync_module_states: every unit broadcasts its parameters and buffers when it is wrapped, inner
// ones first and the root last, before they are cut; with replicas of shards once more across
// these.
Program FullyShardedDataParallel::send_states(Rank& rank) {
  const SiteId site = site_id(fsdp_sites::send_states);
  std::vector<const Unit*> order;
  for (const Unit& unit : units_) {
    order.push_back(&unit);
  }
  std::stable_sort(order.begin(), order.end(), [](const Unit* a, const Unit* b) {
    return a->module.last != b->module.last ? a->module.last < b->module.last
                                            : a->module.first > b->module.first;
  });
  std::stable_partition(order.begin(), order.end(),
                        [](const Unit* unit) { return !unit->is_root; });
  const std::vector<Replica::Buffer>& buffers = replica_.buffers();
  std::vector<bool> is_sent(buffers.size(), false);
  for (const Unit* unit : order) {
    int64_t elements = 0;
    for (const size_t parameter : unit->state.parameters()) {
      elements += elements_of(parameter);
    }
    const Slice whole = rank.allocate(Purpose::parameter, plan().parameter_dtype, elements);
    std::vector<Slice> states{whole};
    for (size_t index = 0; index < buffers.size(); ++index) {
      if (unit->module.contains(buffers[index].layer) && !is_sent[index]) {
        is_sent[index] = true;
        states.push_back(buffers[index].value);
      }
    }
    const int32_t first_in_group = rank.id() - rank.id() % std::max(1, shard_ranks_);
    co_await broadcast_coalesced(rank, shard_group_, states, replica_group_ ? first_in_group : 0,
                                 site);
    if (replica_group_) {
      co_await broadcast_coalesced(rank, *replica_group_, states, rank.id() % shard_ranks_, site);
    }
    rank.release(whole);
  }
}

GradientDivision FullyShardedDataParallel::division(const Rank& rank) const {
  return GradientDivision::over(rank.world_size());
}

// Forward

Program FullyShardedDataParallel::forward(Rank& rank, const Batch& batch,
                                          const StepOptions& options) {
  co_await rank.settle(loss_ready_);  // the host runs at most one step ahead of the device
  forward_order_.clear();
  has_first_order_ = has_first_order_ || !first_order_.empty();
  for (Unit& unit : units_) {
    unit.is_entered = false;
  }
  // 1. Gathers come after the last optimizer step.
  weights_ready_ = rank.event({compute_stream, {}, site_id(fsdp_sites::gather_unit)});
  replica_.begin_forward(rank, batch, options);
  const size_t layers = replica_.network().layers.size();
  const std::vector<size_t> running = running_layers(options);
  size_t next = 0;
  for (size_t layer = 0; layer < layers; ++layer) {
    const bool runs = next < running.size() && running[next] == layer;
    if (runs) {
      co_await enter_units(rank, layer);  // 2. gathered before its first layer,
      refuse_sharded_parameter(layer);
    }
    replica_.forward_layer(rank, layer, options);
    if (runs) {
      ++next;
      leave_units(rank, layer, next < running.size() ? running[next] : layers);  // then freed
    }
  }
  loss_ready_ = replica_.end_forward(rank, options);
}

Program FullyShardedDataParallel::enter_units(Rank& rank, size_t layer) {
  for (size_t index = 0; index < units_.size(); ++index) {
    Unit& unit = units_[index];
    if (!unit.module.contains(layer) || unit.is_entered) {
      continue;
    }
    unit.is_entered = true;
    if (!unit.state.is_gathered()) {
      co_await unshard(rank, unit, layer);
    }
    unit.state.await_gathered(rank, site_id(fsdp_sites::wait_for_unit));
    if (!has_first_order_) {
      first_order_.push_back(index);
      continue;
    }
    const auto found = std::find(first_order_.begin(), first_order_.end(), index);
    if (options_.forward_prefetch && found != first_order_.end() &&
        std::next(found) != first_order_.end()) {
      Unit& next = units_[*std::next(found)];
      if (!next.state.is_gathered()) {
        co_await unshard(rank, next, layer);
      }
    }
  }
}

void FullyShardedDataParallel::leave_units(Rank& rank, size_t layer, size_t next_layer) {
  for (size_t index = units_.size(); index-- > 0;) {
    Unit& unit = units_[index];
    if (!unit.module.contains(layer) || unit.module.contains(next_layer)) {
      continue;
    }
    unit.is_entered = false;
    forward_order_.push_back(index);
    if (options_.frees_after_forward() && !unit.is_root) {
      reshard(rank, unit);
    }
  }
}

// At most two units are gathered ahead of the device: the host waits until the older has been
// freed there.
Program FullyShardedDataParallel::unshard(Rank& rank, Unit& unit, size_t layer) {
  unit.gathered_at = layer;
  constexpr size_t most_in_flight = 2;
  if (options_.limit_all_gathers && freed_.size() >= most_in_flight) {
    const Ticket oldest = freed_.front();
    freed_.pop_front();
    co_await rank.settle(oldest);
  }
  unit.state.gather(rank, shard_exchange(fsdp_sites::gather_unit), weights_ready_);
}

void FullyShardedDataParallel::reshard(Rank& rank, Unit& unit) {
  if (!unit.state.is_gathered() || unit.state.is_whole()) {
    return;
  }
  unit.state.free(rank);
  if (options_.limit_all_gathers) {
    freed_.push_back(rank.event({compute_stream, {}, site_id(fsdp_sites::free_unit)}));
  }
}

}  // namespace lockstep
