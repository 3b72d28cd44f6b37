#include "model/strategy/sharded/fsdp/fsdp.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"
#include "model/strategy/sharded/fsdp/post_backward.hpp"

namespace lockstep {

namespace {

// Buffers of a batch norm without mixed precision stay as they are.
TrainingPlan with_types(const TrainingPlan& plan, const FullyShardedOptions& options) {
  TrainingPlan computing = computing_in(plan, options.param_dtype);
  if (options.wrap.batch_norms_apart) {
    computing.buffer_dtype = plan.parameter_dtype;
  }
  return computing;
}

}  // namespace

FullyShardedDataParallel::FullyShardedDataParallel(const TrainingPlan& plan,
                                                   const FullyShardedOptions& options)
    : UnitSharding(plan, with_types(plan, options),
                   {.gather_unit = fsdp_sites::gather_unit,
                    .wait_for_unit = fsdp_sites::wait_for_unit,
                    .share_norm = fsdp_sites::share_norm,
                    .update = fsdp_sites::update,
                    .zero_gradients = fsdp_sites::zero_gradients,
                    .gather_state = fsdp_sites::gather_state,
                    .make_groups = fsdp_sites::make_groups,
                    .exchange_plans = fsdp_sites::exchange_plans}),
      options_(options) {
  optimizes_flat_ = !options.use_orig_params;
  if (!options.casts_input) {
    follow_types({}, false, options.wrap);
  }
  clips_by_whole_norm_ = !options.clips_by_own_norm;
  if (options.clips_by_own_norm && plan.types().is_mixed()) {
    plugin_without_norm_ = options.mixed_plugin;
  }
}

// Construction

Program FullyShardedDataParallel::setup(Rank& rank, Stage stage) {
  if (!std::exchange(has_groups_, true)) {
    replica_.state().allocate_without_parameters(rank);
    shard_ranks_ = options_.sharding == FullyShardedOptions::Sharding::none ? 1 : rank.world_size();
    if (options_.is_hybrid()) {
      shard_ranks_ = hybrid_ranks(rank.place().local_world_size);
      const Groups groups = co_await make_groups(rank, shard_ranks_);
      shard_group_ = groups.shard;
      replica_group_ = groups.replica;
    }
    tied_ = tied_over_modules(replica_.network(), options_.wrap);
    offload_ = options_.cpu_offload ? Offload::replacing_gradients : Offload::none;
    const DType gathered = computing_plan().parameter_dtype;
    make_units(rank, options_.wrap,
               {plan().parameter_dtype, gathered, options_.reduce_dtype.value_or(gathered)},
               shard_ranks_ == 1 ? 0 : rank.id() % shard_ranks_,
               [&](const std::vector<size_t>& parameters) {
                 return layout_of(parameters, rank.world_size());
               });
    for (Unit& unit : units_) {
      unit.state.settle_on(post_backward_stream);
    }
    make_ignored(rank, options_.wrap);
    if (options_.sync_module_states) {
      co_await send_states(rank);
    }
  }
  if (stage == Stage::fit) {
    forget_optimizer(rank);
    if (plan().synchronises_batch_norm) {
      replica_.synchronise_statistics();
    }
  }
}

// With use_orig_params every tensor begins at an address that 16 divides, in the type that modules
// compute with (FlatParamHandle.__init__, _fwd_bwd_param_dtype).
ShardLayout FullyShardedDataParallel::layout_of(const std::vector<size_t>& parameters,
                                                int32_t ranks) const {
  std::vector<int64_t> sizes;
  for (const size_t index : parameters) {
    sizes.push_back(elements_of(index));
  }
  constexpr int64_t alignment_bytes = 16;
  const int64_t size = size_of(computing_plan().parameter_dtype);
  if (!options_.use_orig_params) {
    return ShardLayout::flat(sizes, shard_ranks_);
  }
  // Aligned parameters are padded for all ranks also where they are not cut.
  const bool is_cut = options_.sharding != FullyShardedOptions::Sharding::none;
  return ShardLayout::flat(sizes, shard_ranks_, std::max<int64_t>(1, alignment_bytes / size),
                           is_cut ? 1 : ranks);
}

// Parts of a checkpoint are rows of the parameters, however the shards cut them.
std::vector<int64_t> FullyShardedDataParallel::kinds_of_ranks(const RanksOfRun& run) {
  if (plan().numerics) {
    return {};
  }
  if (options_.sharding == FullyShardedOptions::Sharding::none) {
    return std::vector<int64_t>(static_cast<size_t>(run.all), 0);
  }
  shard_ranks_ = options_.is_hybrid() ? hybrid_ranks(run.of_node) : run.all;
  const auto flat = [&](const std::vector<size_t>& parameters) {
    return layout_of(parameters, run.all);
  };
  const auto rows = [&](const std::vector<size_t>& parameters) {
    return ShardLayout::by_rows(rows_of(replica_, parameters), shard_ranks_);
  };
  ShardKinds kinds(shard_ranks_);
  divide_by_pieces(kinds, options_.wrap, flat);
  if (options_.saves_in_parts) {
    divide_by_pieces(kinds, options_.wrap, rows);
  }
  std::vector<int64_t> of_ranks;
  for (int32_t rank = 0; rank < run.all; ++rank) {
    of_ranks.push_back(kinds.kinds()[static_cast<size_t>(rank % shard_ranks_)]);
  }
  if (options_.saves_in_parts && run.writing_takes_time) {
    const std::vector<bool> stepped(plan().optimizers.size(), true);
    ShardedCheckpoint(replica_, plan(), {shard_ranks_, 1, stepped}).divide_by_parts(of_ranks);
  }
  return of_ranks;
}

Neighbourhoods FullyShardedDataParallel::neighbourhoods_of_ranks(const RanksOfRun& run) {
  return options_.is_hybrid() ? neighbours_in_order(run.all, hybrid_ranks(run.of_node))
                              : Neighbourhoods();
}

int32_t FullyShardedDataParallel::hybrid_ranks(int32_t ranks_of_node) const {
  return options_.shard_ranks > 0 ? options_.shard_ranks : ranks_of_node;
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

// _init_core_state makes a NO_SHARD of it, whose all_reduce is in the group that shards
// (_reduce_grad_no_shard); the division is still by all ranks.
std::vector<KnownDifference> FullyShardedDataParallel::known_differences() {
  std::vector<KnownDifference> known = UnitSharding::known_differences();
  add_ignored_difference("ignored_states", known);
  if (shards_over_one_rank()) {
    known.push_back(
        {"hybrid sharding over groups of one rank becomes NO_SHARD, which reduces gradients "
         "within such a group alone: no rank sees those of another",
         "use FULL_SHARD or NO_SHARD, or give a device_mesh with more than one shard",
         DifferenceKind::of_replicas});
  }
  return known;
}

// Forward and backward

void FullyShardedDataParallel::begin_forward(const StepOptions& options) {
  has_graph_ = options.training;
  has_first_order_ = has_first_order_ || !first_order_.empty();
}

// A unit with original parameters keeps a part of each, without its shape, where modules that share
// one look for it; the whole ones are views that its own modules alone have.
void FullyShardedDataParallel::check_forward(size_t layer) const {
  UnitSharding::check_forward(layer);
  if (options_.casts_norms && is_apart(replica_.network(), options_.wrap, layer) &&
      plan().parameter_dtype != DType::fp32) {
    throw ProgramException(
        site_id(fsdp_sites::norm_in_wide_type),
        fmt::format("RuntimeError: batch_norm gets its input in fp32 and has weights in {}: FSDP "
                    "casts what `{}` gets, because a policy with mixed precision makes it a unit "
                    "without (use bf16-mixed, or leave auto_wrap_policy out)",
                    name_of(plan().parameter_dtype), replica_.network().layers[layer].name));
  }
  for (const TiedOverModules& tied : tied_) {
    const std::string found = tied.other == layer ? shared_weight_outside() : std::string();
    if (!found.empty()) {
      const Network& network = replica_.network();
      throw ProgramException(
          site_id(fsdp_sites::shared_weight),
          fmt::format("RuntimeError: `{}` needs the weight that it shares with `{}`, of whose FSDP "
                      "unit it is a parameter; here it {}",
                      network.layers[layer].name, network.layers[tied.owner].name, found));
    }
  }
}

// Outside of its unit a weight is the rank's own: a shard, as it is stored, where it is stored
// (torch 2.11 was run on one rank and on two).
std::string FullyShardedDataParallel::shared_weight_outside() const {
  if (shard_ranks_ > 1) {
    return "has the shape of a shard (\"size mismatch\" or \"'weight' must be 2-D\")";
  }
  if (options_.cpu_offload) {
    return "is in host memory (\"Expected all tensors to be on the same device\")";
  }
  const DType computed = computing_plan().parameter_dtype;
  return computed == plan().parameter_dtype
             ? std::string()
             : fmt::format(
                   "is in {} beside activations in {} (\"mat1 and mat2 must have the same "
                   "dtype\")",
                   name_of(plan().parameter_dtype), name_of(computed));
}

// From the second forward on the unit that the first one entered next.
Program FullyShardedDataParallel::prefetch_forward(Rank& rank, Unit& unit, size_t layer) {
  const auto index = static_cast<size_t>(&unit - units_.data());
  if (!has_first_order_) {
    first_order_.push_back(index);
    co_return;
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

bool FullyShardedDataParallel::frees_in_every_forward(const Unit& unit) const {
  return options_.frees_after_forward() && !unit.is_root;
}

// What stays gathered for a backward keeps its views; without one the module has those of the shard
// (_use_sharded_flat_param, skip_use_sharded_views). A flat parameter leaves the old views to it.
void FullyShardedDataParallel::reshard_after_forward(Rank& rank, Unit& unit) {
  if (frees_in_every_forward(unit)) {
    reshard(rank, unit);
  } else if (!has_graph_ && options_.use_orig_params && unit.state.is_sharded()) {
    if (unit.is_root && in_step_hook_) {
      shows_root_until_end_ = true;
    } else {
      unit.state.show_shard();
    }
  }
}

// The outermost unit is around the step hook, and not around the network's forward within it.
void FullyShardedDataParallel::in_step_hook(bool runs) {
  in_step_hook_ = runs;
  if (runs || !std::exchange(shows_root_until_end_, false)) {
    return;
  }
  for (Unit& unit : units_) {
    if (unit.is_root && unit.state.is_gathered()) {
      unit.state.show_shard();
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
  const bool is_freed = unit.state.is_gathered() && !unit.state.is_whole();
  UnitSharding::reshard(rank, unit);
  if (is_freed && options_.limit_all_gathers) {
    freed_.push_back(rank.event({compute_stream, {}, site_id(fsdp_sites::free_unit)}));
  }
}

Program FullyShardedDataParallel::prefetch_backward(Rank& rank, Unit& unit) {
  if (options_.backward_prefetch == FullyShardedOptions::BackwardPrefetch::before) {
    co_await gather_next(rank, unit);
  }
}

// Of a unit whose output needs no gradient nothing is registered that would gather it
// (_needs_pre_backward_unshard of _get_handle_to_prefetch).
Program FullyShardedDataParallel::gather_next(Rank& rank, const Unit& unit) {
  Unit* const next = next_to_gather(unit);
  if (next != nullptr && next->has_backward) {
    co_await unshard(rank, *next, next->gathered_at);
  }
}

Program FullyShardedDataParallel::end_backward(Rank& rank, Unit& unit, Ticket done,
                                               bool synchronise) {
  unit.has_reduced = true;
  if (synchronise || options_.frees_after_forward()) {
    reshard(rank, unit);
    if (options_.backward_prefetch == FullyShardedOptions::BackwardPrefetch::after) {
      co_await gather_next(rank, unit);
    }
  }
  if (!synchronise) {
    co_return;  // no_sync: the whole gradients stay on this rank
  }
  const bool sharded = unit.state.is_sharded();
  const ShardedUnit::Exchange across{
      shards_over_one_rank() ? shard_group_ : replica_group_.value_or(world_group),
      site_id(fsdp_sites::reduce_replicas)};
  unit.state.reduce(rank, shard_exchange(fsdp_sites::reduce_unit),
                    replica_group_ || !sharded ? &across : nullptr, division(rank), done);
  unit.state.settle_gradients(rank, division(rank), site_id(fsdp_sites::take_gradients));
}

Program FullyShardedDataParallel::finish_backward(Rank& rank, bool synchronise) {
  for (Unit& unit : units_) {
    if (unit.is_root && unit.state.has_whole_gradients()) {
      co_await end_backward(rank, unit, {}, synchronise);
    }
    if (synchronise || options_.frees_after_forward()) {
      reshard(rank, unit);
    }
  }
  if (synchronise) {
    await_settled(rank, site_id(fsdp_sites::take_gradients));
  }
}

}  // namespace lockstep
