#include "model/strategy/sharded/fsdp.hpp"

#include <algorithm>

#include "model/core/ensure.hpp"
#include "model/strategy/gradient_clipping.hpp"
#include "model/strategy/replica_sites.hpp"
#include "model/strategy/sharded/fsdp_sites.hpp"

namespace lockstep {

using namespace fsdp_sites;

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
    : DistributedStrategy(plan),
      options_(options),
      computing_plan_(computing_in(plan, options)),
      replica_(computing_plan_, DeviceId{0}) {}

// Construction

Program FullyShardedDataParallel::setup(Rank& rank, Stage stage) {
  if (!std::exchange(has_groups_, true)) {
    replica_.allocate_without_parameters(rank);
    co_await make_groups(rank);
    make_units(rank);
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

// Every rank makes every group, node by node, then those of equal places in their nodes
// (_init_intra_and_inter_node_groups).
Program FullyShardedDataParallel::make_groups(Rank& rank) {
  shard_ranks_ = options_.sharding == FullyShardedOptions::Sharding::none ? 1 : rank.world_size();
  if (!options_.is_hybrid()) {
    co_return;
  }
  const int32_t in_node = rank.place().local_world_size;
  const int32_t nodes = rank.world_size() / in_node;
  const auto make = [&](int32_t first, int32_t count, int32_t step) {
    std::vector<int64_t> members;
    for (int32_t i = 0; i < count; ++i) {
      members.push_back(first + i * step);
    }
    return rank.new_group(world_group, members,
                          {communication_stream, {}, site_id(fsdp_sites::make_groups)});
  };
  for (int32_t node = 0; node < nodes; ++node) {
    const Rank::NewGroup made = make(node * in_node, in_node, 1);
    co_await rank.settle(made.ready);
    shard_group_ = node == rank.id() / in_node ? made.group : shard_group_;
  }
  for (int32_t local = 0; local < in_node; ++local) {
    const Rank::NewGroup made = make(local, nodes, in_node);
    co_await rank.settle(made.ready);
    if (local == rank.id() % in_node) {
      replica_group_ = made.group;
    }
  }
  shard_ranks_ = in_node;
}

// A parameter belongs to the innermost module that holds its layer.
void FullyShardedDataParallel::make_units(Rank& rank) {
  const Network& network = replica_.network();
  std::vector<WrappedModule> modules{{0, network.layers.size() - 1}};
  for (const WrappedModule& module : wrapped_modules(network, options_.wrap)) {
    modules.push_back(module);
  }
  std::vector<std::vector<size_t>> parameters(modules.size());
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    const size_t layer = replica_.parameters()[index].place.layer;
    size_t owner = 0;
    for (size_t module = 1; module < modules.size(); ++module) {
      owner = modules[module].contains(layer) ? module : owner;
    }
    parameters[owner].push_back(index);
  }
  const ShardTypes types{plan().parameter_dtype, computing_plan_.parameter_dtype,
                         options_.reduce_dtype.value_or(computing_plan_.parameter_dtype)};
  unit_of_.resize(replica_.parameters().size());
  constexpr uint64_t variant = 0;  // seed_everything: every rank has drawn the same model
  for (size_t module = 0; module < modules.size(); ++module) {
    if (parameters[module].empty()) {
      continue;  // a module without parameters of its own has nothing to gather
    }
    for (const size_t parameter : parameters[module]) {
      unit_of_[parameter] = units_.size();
    }
    const ShardLayout layout = layout_of(parameters[module], shard_ranks_);
    units_.push_back({modules[module],
                      ShardedUnit(replica_, std::move(parameters[module]), layout, types),
                      module == 0, 0, false});
    const int32_t index = shard_ranks_ == 1 ? 0 : rank.id() % shard_ranks_;
    units_.back().state.allocate(rank, index, variant);
  }
}

// With use_orig_params every tensor begins at an address that 16 divides.
ShardLayout FullyShardedDataParallel::layout_of(const std::vector<size_t>& parameters,
                                                int32_t ranks) const {
  std::vector<int64_t> sizes;
  for (const size_t index : parameters) {
    sizes.push_back(replica_.network().parameter(replica_.parameters()[index].place).elements());
  }
  constexpr int64_t alignment_bytes = 16;
  const int64_t size = size_of(plan().parameter_dtype);
  return ShardLayout::flat(
      sizes, ranks, options_.use_orig_params ? std::max<int64_t>(1, alignment_bytes / size) : 1);
}

// sync_module_states: rank 0's parameters and buffers are broadcast before they are cut, in chunks
// of 250 MiB (_sync_module_params_and_buffers).
Program FullyShardedDataParallel::send_states(Rank& rank) {
  std::vector<Slice> states = replica_.buffer_values();
  std::vector<Slice> whole;
  for (const Replica::Parameter& parameter : replica_.parameters()) {
    const int64_t elements = replica_.network().parameter(parameter.place).elements();
    whole.push_back(rank.allocate(Purpose::parameter, plan().parameter_dtype, elements));
    if (replica_.writes_values()) {
      rank.write(whole.back(), replica_.initial_value(whole.size() - 1, 0));
    }
  }
  states.insert(states.begin(), whole.begin(), whole.end());
  co_await broadcast_coalesced(rank, world_group, states, 0, site_id(fsdp_sites::send_states));
  for (const Slice& parameter : whole) {
    rank.release(parameter);
  }
}

ShardedUnit::Exchange FullyShardedDataParallel::shard_exchange(std::string_view site) const {
  return {shard_group_, site_id(site)};
}

GradientDivision FullyShardedDataParallel::division(const Rank& rank) const {
  return GradientDivision::over(rank.world_size());
}

// Forward

Program FullyShardedDataParallel::forward(Rank& rank, const Batch& batch,
                                          const StepOptions& options) {
  co_await rank.settle(loss_ready_);  // the host runs at most one step ahead of the device
  forward_order_.clear();
  // 1. Gathers come after the last optimizer step.
  weights_ready_ = rank.event({compute_stream, {}, site_id(gather_unit)});
  replica_.begin_forward(rank, batch, options);
  const size_t layers = replica_.network().layers.size();
  std::vector<size_t> running;
  for (size_t layer = 0; layer < layers; ++layer) {
    if (replica_.runs(layer, options)) {
      running.push_back(layer);
    }
  }
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
    const bool is_entered = unit.module.contains(layer);
    if (is_entered && !unit.state.is_gathered()) {
      co_await unshard(rank, unit);
    }
    if (is_entered) {
      unit.state.await_gathered(rank, site_id(wait_for_unit));
    }
  }
}

void FullyShardedDataParallel::leave_units(Rank& rank, size_t layer, size_t next_layer) {
  for (size_t index = units_.size(); index-- > 0;) {
    Unit& unit = units_[index];
    if (!unit.module.contains(layer) || unit.module.contains(next_layer)) {
      continue;
    }
    forward_order_.push_back(index);
    if (options_.frees_after_forward() && !unit.is_root) {
      reshard(rank, unit);
    }
  }
}

// At most two units are gathered ahead of the device: the host waits until the older has been
// freed there.
Program FullyShardedDataParallel::unshard(Rank& rank, Unit& unit) {
  constexpr size_t most_in_flight = 2;
  if (options_.limit_all_gathers && freed_.size() >= most_in_flight) {
    const Ticket oldest = freed_.front();
    freed_.pop_front();
    co_await rank.settle(oldest);
  }
  unit.state.gather(rank, shard_exchange(gather_unit), weights_ready_);
}

void FullyShardedDataParallel::reshard(Rank& rank, Unit& unit) {
  if (!unit.state.is_gathered() || unit.state.is_whole()) {
    return;
  }
  unit.state.free(rank);
  if (options_.limit_all_gathers) {
    freed_.push_back(rank.event({compute_stream, {}, site_id(free_unit)}));
  }
}

// A weight that a layer of another unit defines, which is sharded now.
void FullyShardedDataParallel::refuse_sharded_parameter(size_t layer) const {
  for (const size_t index : replica_.parameters_of(layer)) {
    const Replica::Parameter& parameter = replica_.parameters()[index];
    if (!units_[unit_of_[index]].state.is_gathered()) {
      throw ProgramException(
          site_id(replica_sites::layer_forward),
          "setStorage: `" + replica_.network().parameter_name(parameter.place) +
              "` belongs to another FSDP unit, whose parameters are sharded here; wrap the modules "
              "that share it in one unit");
    }
  }
}

// Update

Program FullyShardedDataParallel::optimizer_step(Rank& rank, const UpdateOptions& options) {
  OptimizerPlan optimizer = plan().optimizers[options.optimizer];
  optimizer.lr = options.learning_rate.value_or(optimizer.lr);
  std::vector<OptimizedTensor*> tensors;
  std::vector<Slice> gradients;
  for (Unit& unit : units_) {
    for (ShardedUnit::Piece& piece : unit.state.pieces()) {
      const Replica::Parameter& parameter = replica_.parameters()[piece.parameter];
      if (!parameter.trainable || !optimizer.holds(parameter.place.layer)) {
        continue;
      }
      tensors.push_back(&piece.tensor);
      if (piece.tensor.gradient.buffer != no_buffer) {
        gradients.push_back(piece.tensor.gradient);
      }
    }
  }
  const SharedNorm norm{shard_group_, site_id(share_norm)};
  clip_gradients(rank, options.clipping, gradients, DeviceId{0},
                 shard_ranks_ > 1 ? &norm : nullptr);
  lockstep::optimizer_step(rank, optimizer, kernels_of(plan()), tensors, site_id(update), {});
  co_return;
}

Program FullyShardedDataParallel::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  for (Unit& unit : units_) {
    unit.state.zero_gradients(rank, optimizer, set_to_none, site_id(fsdp_sites::zero_gradients));
  }
  replica_.zero_gradients(rank, optimizer, set_to_none);  // what no_sync left unsharded
  co_return;
}

std::vector<HeldParameter> FullyShardedDataParallel::held_parameters() {
  std::vector<HeldParameter> held;
  for (const Unit& unit : units_) {
    for (const ShardedUnit::Piece& piece : unit.state.pieces()) {
      held.push_back({piece.parameter, piece.first_element, piece.tensor.value});
    }
  }
  std::sort(held.begin(), held.end(), [](const HeldParameter& a, const HeldParameter& b) {
    return a.parameter < b.parameter;
  });
  return held;
}

// FULL_STATE_DICT: unit after unit is gathered on every rank; rank 0 keeps a copy in host memory.
Program FullyShardedDataParallel::gather_state(Rank& rank, SiteId) {
  const Ticket updated = rank.event({compute_stream, {}, site_id(fsdp_sites::gather_state)});
  for (Unit& unit : units_) {
    if (unit.state.is_sharded() && !unit.state.is_gathered()) {
      unit.state.gather(rank, shard_exchange(fsdp_sites::gather_state), updated);
      unit.state.await_gathered(rank, site_id(fsdp_sites::gather_state));
      const Ticket there = rank.event({compute_stream, {}, site_id(fsdp_sites::gather_state)});
      co_await rank.settle(there);
      unit.state.free(rank);
    }
  }
}

}  // namespace lockstep
