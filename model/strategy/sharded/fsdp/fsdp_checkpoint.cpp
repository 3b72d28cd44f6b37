// Checkpoints of FSDP1 (torch/distributed/fsdp/_state_dict_utils.py, _optim_utils.py).
#include <algorithm>

#include "model/strategy/exchange/object_exchange.hpp"
#include "model/strategy/sharded/fsdp/fsdp.hpp"
#include "model/strategy/sharded/fsdp/fsdp_sites.hpp"

#include "model/network/optimizer/optimizer_rule.hpp"

namespace lockstep {

Task<WrittenBytes> FullyShardedDataParallel::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                             SiteId site) {
  if (options_.saves_in_parts && options_.sharding == FullyShardedOptions::Sharding::none) {
    throw ProgramException(site,
                           "RuntimeError: ``sharded_state_dict`` can only be used when parameters "
                           "are flatten and sharded");
  }
  HostCopy host;
  // Lightning 1.x leaves the whole parameters on the GPU.
  const bool copies =
      options_.gathers_optimizer_state && (options_.saves_in_parts || rank.id() == 0);
  HostCopy* const copy = copies ? &host : nullptr;
  std::vector<Slice> clones;
  co_await gather_weights(rank, copy, options_.gathers_optimizer_state ? nullptr : &clones);
  const bool with_state = !request.weights_only && options_.gathers_optimizer_state;
  for (size_t optimizer = 0; optimizer < plan().optimizers.size() && with_state; ++optimizer) {
    co_await gather_optimizer_state(rank, optimizer, copy);
    refuse_flat_parameters(rank, site);
  }
  co_await host.settle(rank);
  WrittenBytes written = Bytes{};
  if (options_.gathers_optimizer_state) {
    written = co_await write_checkpoint(rank, request, options_.saves_in_parts, site);
  } else if (rank.id() == 0) {
    written = own_checkpoint_bytes(request);
    co_await write_file(rank, written.own, request, 1, site);
  }
  host.release(rank);
  for (const Slice& clone : clones) {
    rank.release(clone);
  }
  co_return written;
}

// A script reads it without a state_dict_type, which is FULL_STATE_DICT without offload to the CPU:
// _full_post_state_dict_hook clones every tensor before its unit is freed.
// What it does with the clones is not stated: they end with the statement.
Program FullyShardedDataParallel::read_state_dict(Rank& rank, SiteId) {
  std::vector<Slice> clones;
  co_await gather_weights(rank, nullptr, &clones);
  for (const Slice& clone : clones) {
    rank.release(clone);
  }
}

// FSDP.rekey_optim_state_dict, which Lightning calls on rank 0 for a full checkpoint.
void FullyShardedDataParallel::refuse_flat_parameters(const Rank& rank, SiteId site) const {
  if (options_.saves_in_parts || options_.use_orig_params || rank.id() != 0) {
    return;
  }
  for (const Unit& unit : units_) {
    if (const size_t names = unit.state.parameters().size(); names > 1) {
      throw ProgramException(
          site, "RuntimeError: Each parameter should only map to one parameter name but got " +
                    std::to_string(names) +
                    " (flat parameters have no full optimizer state: write use_orig_params: true, "
                    "or state_dict_type: sharded)");
    }
  }
}

// What of a unit's gathered tensors this rank copies: of parts, those that it will write.
int64_t FullyShardedDataParallel::file_elements(const Unit& unit, int32_t rank) const {
  int64_t elements = 0;
  for (const size_t parameter : unit.state.parameters()) {
    elements += options_.saves_in_parts ? checkpoint().row_part_elements(parameter, rank)
                                        : elements_of(parameter);
  }
  return elements;
}

// _get_padded_unsharded_flat_param: what forces full precision frees a narrower copy that a forward
// has left, and gathers the unit again.
void FullyShardedDataParallel::drop_narrower(Rank& rank, Unit& unit) {
  if (unit.state.is_sharded() && unit.state.is_gathered() && unit.state.is_cast()) {
    UnitSharding::reshard(rank, unit);
  }
}

// What a unit's hook behind its state_dict does with the whole parameters; none: this rank has them
// in the replica.
void FullyShardedDataParallel::take_weights(Rank& rank, const GatheredUnit& gathered,
                                            HostCopy* host, std::vector<Slice>* clones) {
  const SiteId site = site_id(fsdp_sites::gather_state);
  const Unit& unit = *gathered.unit;
  int64_t left = file_elements(unit, rank.id());
  if (gathered.whole.buffer != no_buffer) {
    if (host != nullptr && left > 0) {
      host->add(rank, gathered.whole.part(0, left), site);
    }
    if (clones != nullptr) {
      clones->push_back(clone_of(rank, unit, gathered.whole));
    }
    rank.release(gathered.whole);
    return;
  }
  // What is offloaded lies in host memory already.
  const bool is_on_device = offload_ == Offload::none || unit.state.is_gathered();
  for (const size_t parameter : unit.state.parameters()) {
    const Slice& value = replica_.parameters()[parameter].tensor.value;
    const int64_t taken = std::min(left, value.elements);
    if (host != nullptr && taken > 0 && is_on_device) {
      host->add(rank, value.part(0, taken), site);
    }
    left -= taken;
  }
  if (clones != nullptr && is_on_device) {
    clones->push_back(clone_of(rank, unit, {}));
  }
}

// The hook before a unit's state_dict gathers it as it is stored, and what is gathered already is
// taken as it is. The state_dicts of units within it come before the hook that frees it, unless it
// goes to host memory at once, or other ranks have no use for it (_unshard_fsdp_state_params).
Program FullyShardedDataParallel::gather_weights(Rank& rank, HostCopy* host,
                                                 std::vector<Slice>* clones) {
  const SiteId site = site_id(fsdp_sites::gather_state);
  const Ticket updated = rank.event({compute_stream, {}, site});
  for (const size_t index : ignored_) {
    if (host != nullptr && rank.id() == 0) {
      host->add(rank, replica_.parameters()[index].tensor.value, site);
    }
  }
  const bool stays_around_others = clones != nullptr || options_.saves_in_parts;
  std::vector<ShardedUnit*> showing_shards;
  std::vector<GatheredUnit> around;
  const auto leave = [&] {
    take_weights(rank, around.back(), host, clones);
    around.pop_back();
  };
  for (Unit& unit : units_) {
    while (!around.empty() && !around.back().unit->module.contains(unit.module)) {
      leave();
    }
    drop_narrower(rank, unit);
    if (unit.state.shows_shard()) {
      unit.state.show_whole();
      showing_shards.push_back(&unit.state);
    }
    around.push_back({&unit, {}});
    if (unit.state.is_sharded() && !unit.state.is_gathered()) {
      const ShardedUnit::Copy copy =
          unit.state.gather_copy(rank, shard_exchange(fsdp_sites::gather_state), updated);
      co_await rank.settle(copy.done);
      around.back().whole = copy.whole;
    }
    if (!stays_around_others) {
      leave();
    }
  }
  while (!around.empty()) {
    leave();
  }
  for (ShardedUnit* const unit : showing_shards) {
    unit->show_shard();
  }
}

// _unshard_params of torch/distributed/fsdp/_unshard_param_utils.py: all units stay gathered beside
// each other; one that is gathered already is taken as it is.
Program FullyShardedDataParallel::begin_whole_parameters(Rank& rank) {
  const Ticket updated = rank.event({compute_stream, {}, site_id(fsdp_sites::summon)});
  for (Unit& unit : units_) {
    drop_narrower(rank, unit);
    if (unit.state.is_sharded() && !unit.state.is_gathered()) {
      co_await summoned_.gather(rank, unit.state, shard_exchange(fsdp_sites::summon), updated);
    } else if (unit.state.shows_shard()) {
      summoned_.show_gathered(unit.state);
    } else if (!unit.state.is_sharded() && options_.cpu_offload) {
      summoned_.show(unit.state);
    }
  }
}

// With the original parameters in the order of their names, else as the units are wrapped.
std::vector<const UnitSharding::Unit*> FullyShardedDataParallel::units_with_state(
    size_t optimizer) const {
  const auto name_of = [this](const Unit* unit) {
    std::string least;
    for (const size_t parameter : unit->state.parameters()) {
      const std::string name =
          replica_.network().parameter_name(replica_.parameters()[parameter].place);
      least = least.empty() || name < least ? name : least;
    }
    return least;
  };
  std::vector<const Unit*> units;
  for (const Unit& unit : units_) {
    const std::vector<size_t>& parameters = unit.state.parameters();
    if (std::ranges::any_of(parameters,
                            [&](size_t index) { return checkpoint().updates(optimizer, index); })) {
      units.push_back(&unit);
    }
  }
  if (options_.use_orig_params) {
    std::ranges::stable_sort(units, {}, name_of);
  }
  return units;
}

// FSDP.optim_state_dict: the ranks agree on what has state, and gather it unit by unit.
Program FullyShardedDataParallel::gather_optimizer_state(Rank& rank, size_t optimizer,
                                                         HostCopy* host) {
  co_await exchange_keys(rank, optimizer);
  const int tensors = checkpoint().state_tensors_of(optimizer);
  for (const Unit* unit : units_with_state(optimizer)) {
    if (unit->state.is_sharded() && tensors > 0) {
      co_await gather_states_of(rank, *unit, optimizer, host);
      continue;
    }
    for (const ShardedUnit::Piece& piece : unit->state.pieces()) {
      for (const Slice& state : piece.tensor.state) {
        if (host != nullptr && offload_ == Offload::none) {
          host->add(rank, state, site_id(fsdp_sites::gather_optimizer));
        }
      }
    }
  }
}

// Keys are names of parameters; a pickle has about so many bytes beside each of them. With original
// parameters a rank has keys of those that it has a part of.
Bytes FullyShardedDataParallel::keys_bytes(size_t optimizer) const {
  constexpr int64_t empty_list = 5;
  if (checkpoint().state_tensors_of(optimizer) == 0) {
    return Bytes(empty_list);
  }
  const bool is_flat = !options_.use_orig_params;
  std::vector<int64_t> bytes(static_cast<size_t>(shard_ranks_), is_flat ? 60 : 75);
  for (const Unit& unit : units_) {
    const std::vector<size_t>& parameters = unit.state.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!checkpoint().updates(optimizer, parameters[i])) {
        continue;
      }
      const ParameterPlace place = replica_.parameters()[parameters[i]].place;
      const auto name = static_cast<int64_t>(replica_.network().parameter_name(place).size());
      const ShardLayout::Ranks holders =
          is_flat ? ShardLayout::Ranks{0, shard_ranks_} : unit.state.layout().ranks_with(i);
      for (int32_t shard = holders.first; shard < holders.end; ++shard) {
        bytes[static_cast<size_t>(shard)] += name + (is_flat ? 12 : 14);
      }
    }
  }
  return Bytes(*std::max_element(bytes.begin(), bytes.end()));
}

Program FullyShardedDataParallel::exchange_keys(Rank& rank, size_t optimizer) {
  const bool is_flat = !options_.use_orig_params;
  const Bytes keys = keys_bytes(optimizer);
  const SiteId site = site_id(fsdp_sites::gather_optimizer);
  const ObjectExchange exchange{world_group, rank.world_size(), 0, site};
  if (!is_flat) {
    co_await all_gather_pickled(rank, exchange, keys);
    co_return;
  }
  co_await broadcast_pickled(rank, exchange, keys);
  const Slice missing = rank.allocate(Purpose::communication, DType::int32, 1);
  const Ticket computed = rank.event({compute_stream, {}, site});
  const Ticket summed = rank.all_reduce(world_group, missing, Reduction::sum,
                                        {communication_stream, {computed}, site});
  co_await rank.settle(summed);
  rank.release(missing);
}

Program FullyShardedDataParallel::gather_states_of(Rank& rank, const Unit& unit, size_t optimizer,
                                                   HostCopy* host) {
  const int tensors = checkpoint().state_tensors_of(optimizer);
  if (options_.use_orig_params) {
    // Shapes of what a rank has of each parameter, and Adam's counters as tensors.
    const int counters = rule_of(plan().optimizers[optimizer].kind).counters();
    const int64_t of_parameter = 25 + 18 * tensors + 265 * counters;
    const Bytes information((counters > 0 ? 350 : 200) +
                            of_parameter * unit.state.layout().most_pieces());
    co_await all_gather_pickled(
        rank, {shard_group_, shard_ranks_, 0, site_id(fsdp_sites::gather_optimizer)}, information);
  }
  for (int tensor = 0; tensor < tensors; ++tensor) {
    co_await gather_for_file(rank, unit.state.layout().shard_elements(),
                             file_elements(unit, rank.id()), host);
  }
}

}  // namespace lockstep
