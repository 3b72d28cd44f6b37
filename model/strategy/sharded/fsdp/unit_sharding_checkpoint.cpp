// What a checkpoint of shards holds, and who writes it.
#include <algorithm>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/fsdp/unit_sharding.hpp"

#include "model/network/optimizer/optimizer_rule.hpp"

namespace lockstep {

namespace {

// Options of torch's parameter groups: lr, betas, eps and so on, and the list of parameters.
int64_t options_of(const OptimizerPlan& optimizer) {
  return rule_of(optimizer.kind).group_entries();
}

int64_t counters_of(const OptimizerPlan& optimizer) { return rule_of(optimizer.kind).counters(); }

}  // namespace

Program UnitSharding::gather_whole(Rank& rank, Unit& unit, std::string_view site, Ticket after) {
  const ShardedUnit::Copy copy = unit.state.gather_copy(rank, shard_exchange(site), after);
  co_await rank.settle(copy.done);
  WholeUnit whole{static_cast<size_t>(&unit - units_.data()), copy.whole, {}};
  const std::vector<size_t>& parameters = unit.state.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    Slice& value = replica_.parameters()[parameters[i]].tensor.value;
    whole.former.push_back(value);
    value = copy.whole.part(unit.state.layout().offset_of(i), elements_of(parameters[i]));
  }
  whole_units_.push_back(std::move(whole));
}

void UnitSharding::show_whole(Unit& unit) {
  WholeUnit whole{static_cast<size_t>(&unit - units_.data()), {}, {}};
  for (const size_t parameter : unit.state.parameters()) {
    whole.former.push_back(replica_.parameters()[parameter].tensor.value);
  }
  for (const ShardedUnit::Piece& piece : unit.state.pieces()) {
    replica_.parameters()[piece.parameter].tensor.value = piece.tensor.value;
  }
  whole_units_.push_back(std::move(whole));
}

// Units that were entered last are left first. What is written back to the shards is not read here.
Program UnitSharding::end_whole_parameters(Rank& rank) {
  for (; !whole_units_.empty(); whole_units_.pop_back()) {
    const WholeUnit& whole = whole_units_.back();
    const std::vector<size_t>& parameters = units_[whole.unit].state.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      replica_.parameters()[parameters[i]].tensor.value = whole.former[i];
    }
    if (whole.whole.buffer != no_buffer) {
      rank.release(whole.whole);
    }
  }
  co_return;
}

Slice UnitSharding::clone_of(Rank& rank, const Unit& unit, const Slice& whole) {
  const SiteId site = site_id(steps_.gather_state);
  std::vector<Slice> from;
  int64_t elements = 0;
  const std::vector<size_t>& parameters = unit.state.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t own = elements_of(parameters[i]);
    from.push_back(whole.buffer == no_buffer ? replica_.parameters()[parameters[i]].tensor.value
                                             : whole.part(unit.state.layout().offset_of(i), own));
    elements += own;
  }
  const Slice clone = rank.allocate(Purpose::gathered, from.front().dtype, elements);
  std::vector<Slice> to;
  for (const Slice& part : from) {
    to.push_back(clone.part(to.empty() ? 0 : to.back().begin + to.back().elements, part.elements));
  }
  elementwise(rank, Kernel::copy, from, to, 0, {compute_stream, {}, site});
  return clone;
}

int UnitSharding::state_tensors_of(size_t optimizer) const {
  return has_stepped_[optimizer] ? state_tensors(plan().optimizers[optimizer]) : 0;
}

bool UnitSharding::updates(size_t optimizer, size_t parameter) const {
  const Replica::Parameter& each = replica_.parameters()[parameter];
  return each.trainable && plan().optimizers[optimizer].holds(each.place.layer);
}

ModelBytes UnitSharding::checkpoint_bytes() const {
  ModelBytes bytes = model_bytes(replica_, plan());
  bytes.optimizer_state = {};
  for (size_t optimizer = 0; optimizer < plan().optimizers.size(); ++optimizer) {
    for (size_t index = 0; index < replica_.parameters().size(); ++index) {
      if (updates(optimizer, index)) {
        bytes.optimizer_state += Bytes(size_of(plan().parameter_dtype)) * elements_of(index) *
                                 state_tensors_of(optimizer);
      }
    }
  }
  return bytes;
}

Bytes UnitSharding::own_checkpoint_bytes(const CheckpointRequest& request) const {
  Bytes bytes = checkpoint_bytes().weights;
  for (const Unit& unit : units_) {
    for (const ShardedUnit::Piece& piece : unit.state.pieces()) {
      for (const Slice& state : piece.tensor.state) {
        bytes += request.weights_only ? Bytes{} : state.bytes();
      }
    }
  }
  return bytes;
}

CheckpointParts UnitSharding::checkpoint_parts(const Rank& rank, bool weights_only) const {
  // What ranks of a tensor-parallel group hold alike counts as divided among them, too: norms.
  CheckpointParts parts(rank.world_size(), shard_ranks_ * tensor_ranks_.ranks);
  const Network& network = replica_.network();
  using Add = void (CheckpointParts::*)(int64_t, Bytes, size_t);
  const auto add = [&](size_t index, Add as) {
    const ParameterPlace place = replica_.parameters()[index].place;
    const Shape& shape = network.parameter(place).shape;
    const int64_t rows = shape.empty() ? 1 : shape.front();
    const int64_t row = rows == 0 ? 0 : elements_of(index) / rows;
    const std::optional<TensorCut>& cut = network.parameter(place).cut;
    (parts.*as)(rows * (cut ? cut->parts : 1), Bytes(size_of(plan().parameter_dtype)) * row,
                network.parameter_name(place).size());
  };
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    add(index, &CheckpointParts::add_parameter);
  }
  for (size_t optimizer = 0; optimizer < plan().optimizers.size() && !weights_only; ++optimizer) {
    const int tensors = state_tensors_of(optimizer);
    for (size_t index = 0; index < replica_.parameters().size(); ++index) {
      for (int tensor = 0; tensor < tensors && updates(optimizer, index); ++tensor) {
        add(index, &CheckpointParts::add_state);
      }
      const int64_t counters =
          tensors > 0 && updates(optimizer, index) ? counters_of(plan().optimizers[optimizer]) : 0;
      for (int64_t counter = 0; counter < counters; ++counter) {
        parts.add_counter(network.parameter_name(replica_.parameters()[index].place).size());
      }
    }
    parts.add_options(options_of(plan().optimizers[optimizer]));
  }
  parts.assign();
  return parts;
}

int64_t UnitSharding::row_part_elements(size_t parameter, int32_t rank) const {
  const Shape& shape = replica_.network().parameter(replica_.parameters()[parameter].place).shape;
  const int64_t rows = shape.empty() ? 1 : shape.front();
  if (rows == 0) {
    return 0;
  }
  const int64_t part = (rows + shard_ranks_ - 1) / shard_ranks_;
  const int64_t first = std::min(rows, part * (rank % shard_ranks_));
  return (std::min(rows, first + part) - first) * (elements_of(parameter) / rows);
}

Program UnitSharding::gather_for_file(Rank& rank, int64_t part, int64_t whole, HostCopy* host) {
  const SiteId site = site_id(steps_.gather_state);
  const DType dtype = plan().parameter_dtype;
  const Slice own = rank.allocate(Purpose::communication, dtype, part);
  const Slice all = rank.allocate(Purpose::gathered, dtype, part * shard_ranks_);
  const Ticket updated = rank.event({compute_stream, {}, site});
  const Ticket gathered =
      rank.all_gather(shard_group_, own, all, {communication_stream, {updated}, site});
  co_await rank.settle(gathered);
  if (host != nullptr && whole > 0) {
    host->add(rank, all.part(0, whole), site);
  }
  rank.release(all);
  rank.release(own);
}

Task<Bytes> UnitSharding::write_checkpoint(Rank& rank, CheckpointRequest request, bool in_parts,
                                           SiteId site) {
  co_await send_path(rank, request, site);
  if (in_parts) {
    const CheckpointParts parts = checkpoint_parts(rank, request.weights_only);
    co_return co_await save_parts(rank, parts, request, site_id(steps_.exchange_plans));
  }
  const Bytes bytes = rank.id() == 0 ? checkpoint_bytes().of(request) : Bytes{};
  co_await write_file(rank, bytes, request, 1, site);
  co_return bytes;
}

}  // namespace lockstep
