#include "model/strategy/sharded/fsdp/sharded_checkpoint.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/network/optimizer/optimizer_rule.hpp"

namespace lockstep {

namespace {

// Options of torch's parameter groups: lr, betas, eps and so on, and the list of parameters.
int64_t options_of(const OptimizerPlan& optimizer) {
  return rule_of(optimizer.kind).group_entries();
}

int64_t counters_of(const OptimizerPlan& optimizer) { return rule_of(optimizer.kind).counters(); }

}  // namespace

int64_t ShardedCheckpoint::elements_of(size_t parameter) const {
  return replica_.network().parameter(replica_.parameters()[parameter].place).elements();
}

int ShardedCheckpoint::state_tensors_of(size_t optimizer) const {
  return division_.has_stepped[optimizer] ? state_tensors(plan_.optimizers[optimizer]) : 0;
}

bool ShardedCheckpoint::updates(size_t optimizer, size_t parameter) const {
  const Replica::Parameter& each = replica_.parameters()[parameter];
  return each.trainable && plan_.optimizers[optimizer].holds(each.place.layer);
}

ModelBytes ShardedCheckpoint::bytes() const {
  ModelBytes bytes = model_bytes(replica_, plan_);
  bytes.optimizer_state = {};
  for (size_t optimizer = 0; optimizer < plan_.optimizers.size(); ++optimizer) {
    for (size_t index = 0; index < replica_.parameters().size(); ++index) {
      if (updates(optimizer, index)) {
        bytes.optimizer_state += Bytes(size_of(plan_.parameter_dtype)) * elements_of(index) *
                                 state_tensors_of(optimizer);
      }
    }
  }
  return bytes;
}

CheckpointParts ShardedCheckpoint::parts(int32_t ranks, bool weights_only) const {
  // What ranks of a tensor-parallel group hold alike counts as divided among them, too: norms.
  CheckpointParts parts(ranks, division_.shard_ranks * division_.tensor_ranks);
  const Network& network = replica_.network();
  using Add = void (CheckpointParts::*)(int64_t, Bytes, size_t);
  const auto add = [&](size_t index, Add as) {
    const ParameterPlace place = replica_.parameters()[index].place;
    const Shape& shape = network.parameter(place).shape;
    const int64_t rows = shape.empty() ? 1 : shape.front();
    const int64_t row = rows == 0 ? 0 : elements_of(index) / rows;
    const std::optional<TensorCut>& cut = network.parameter(place).cut;
    (parts.*as)(rows * (cut ? cut->parts : 1), Bytes(size_of(plan_.parameter_dtype)) * row,
                network.parameter_name(place).size());
  };
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    add(index, &CheckpointParts::add_parameter);
  }
  for (size_t optimizer = 0; optimizer < plan_.optimizers.size() && !weights_only; ++optimizer) {
    const int tensors = state_tensors_of(optimizer);
    for (size_t index = 0; index < replica_.parameters().size(); ++index) {
      for (int tensor = 0; tensor < tensors && updates(optimizer, index); ++tensor) {
        add(index, &CheckpointParts::add_state);
      }
      const int64_t counters =
          tensors > 0 && updates(optimizer, index) ? counters_of(plan_.optimizers[optimizer]) : 0;
      for (int64_t counter = 0; counter < counters; ++counter) {
        parts.add_counter(network.parameter_name(replica_.parameters()[index].place).size());
      }
    }
    parts.add_options(options_of(plan_.optimizers[optimizer]));
  }
  parts.assign();
  return parts;
}

void ShardedCheckpoint::divide_by_parts(std::vector<int64_t>& kinds) const {
  for (const bool weights_only : {false, true}) {
    const CheckpointParts written = parts(static_cast<int32_t>(kinds.size()), weights_only);
    std::map<std::pair<int64_t, Bytes>, int64_t> numbers;
    for (size_t rank = 0; rank < kinds.size(); ++rank) {
      const Bytes bytes = written.bytes_of(static_cast<int32_t>(rank));
      kinds[rank] = numbers.try_emplace({kinds[rank], bytes}, std::ssize(numbers)).first->second;
    }
  }
}

int64_t ShardedCheckpoint::row_part_elements(size_t parameter, int32_t rank) const {
  const Shape& shape = replica_.network().parameter(replica_.parameters()[parameter].place).shape;
  const int64_t rows = shape.empty() ? 1 : shape.front();
  if (rows == 0) {
    return 0;
  }
  const int64_t part = (rows + division_.shard_ranks - 1) / division_.shard_ranks;
  const int64_t first = std::min(rows, part * (rank % division_.shard_ranks));
  return (std::min(rows, first + part) - first) * (elements_of(parameter) / rows);
}

}  // namespace lockstep
