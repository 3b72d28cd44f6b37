#include "model/strategy/sharded/fsdp/unit_sharding.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/strategy/local_model/replica_sites.hpp"
#include "model/strategy/local_model/scaled_step.hpp"
#include "model/strategy/local_model/statistics_kept_apart.hpp"
#include "model/strategy/sharded/norm_of_own_part.hpp"
#include "model/strategy/tensor/tensor_mesh.hpp"

namespace lockstep {

UnitSharding::UnitSharding(const TrainingPlan& plan, TrainingPlan computing, const Steps& steps)
    : DistributedStrategy(plan),
      steps_(steps),
      computing_plan_(std::move(computing)),
      replica_(computing_plan_, DeviceId{0}),
      has_stepped_(plan.optimizers.size(), false) {}

int64_t UnitSharding::elements_of(size_t parameter) const {
  return replica_.network().parameter(replica_.parameters()[parameter].place).elements();
}

TrainingPlan computing_in(TrainingPlan plan, std::optional<DType> gathered) {
  if (gathered) {
    // Without autocast layers compute in the type of their parameters and inputs.
    plan.activation_dtype = plan.types().is_mixed() ? plan.activation_dtype : *gathered;
    plan.parameter_dtype = *gathered;
  }
  return plan;
}

// Autocast narrows what layers take. RMSNorm of torch promotes, and indices are no numbers to cast.
void UnitSharding::follow_types(const std::vector<WrappedModule>& casting, bool widens,
                                const WrapPolicy& wrap) {
  const Network& network = replica_.network();
  if (plan().types().is_mixed() || computing_plan_.parameter_dtype == plan().parameter_dtype) {
    return;
  }
  bool is_narrow = !is_floating(network.input_dtype_of(0));
  for (size_t layer = 0; layer < network.layers.size() && !uncast_layer_; ++layer) {
    const Layer& each = network.layers[layer];
    is_narrow = is_narrow || std::ranges::count(casting, layer, &WrappedModule::first) > 0;
    const bool takes_any = each.kind == LayerKind::rms_norm || is_apart(network, wrap, layer) ||
                           each.parameters.empty();
    if (!is_narrow && !takes_any) {
      uncast_layer_ = layer;
    }
    is_narrow =
        is_narrow && !(widens && std::ranges::count(casting, layer, &WrappedModule::last) > 0);
  }
}

void UnitSharding::check_forward(size_t layer) const {
  if (uncast_layer_ == layer) {
    throw ProgramException(
        site_id(steps_.gather_unit),
        fmt::format("RuntimeError: mat1 and mat2 must have the same dtype: `{}` gets its input in "
                    "{} and has weights in {}, because no module casts it",
                    replica_.network().layers[layer].name, name_of(plan().parameter_dtype),
                    name_of(computing_plan_.parameter_dtype)));
  }
}

std::vector<UnitModule> UnitSharding::wrapped_units(const WrapPolicy& wrap) const {
  return unit_modules(replica_, wrap, {0, replica_.network().layers.size() - 1});
}

std::vector<int64_t> UnitSharding::treatments(const std::vector<size_t>& parameters,
                                              bool is_flat) const {
  std::vector<int64_t> found;
  for (const size_t index : parameters) {
    const Replica::Parameter& parameter = replica_.parameters()[index];
    const std::vector<OptimizerPlan>& optimizers = plan().optimizers;
    const auto holder = std::ranges::find_if(optimizers, [&](const OptimizerPlan& optimizer) {
      return optimizer.holds(parameter.place.layer);
    });
    const int64_t held = parameter.trainable ? holder - optimizers.begin() : -1;
    found.push_back(is_flat ? held : static_cast<int64_t>(index));
  }
  return found;
}

// Neighbours first, then those of equal places (_init_intra_and_inter_node_groups of FSDP1, a
// device mesh of two dimensions).
Task<UnitSharding::Groups> UnitSharding::make_groups(Rank& rank, int32_t in_group) {
  const int32_t groups = rank.world_size() / in_group;
  const auto make = [&](int32_t first, int32_t count, int32_t step) {
    std::vector<int64_t> members;
    for (int32_t i = 0; i < count; ++i) {
      members.push_back(first + i * step);
    }
    return rank.new_group(world_group, members,
                          {communication_stream, {}, site_id(steps_.make_groups)});
  };
  Groups made_groups;
  for (int32_t group = 0; group < groups; ++group) {
    const Rank::NewGroup made = make(group * in_group, in_group, 1);
    co_await rank.settle(made.ready);
    made_groups.shard = group == rank.id() / in_group ? made.group : made_groups.shard;
  }
  for (int32_t local = 0; local < in_group; ++local) {
    const Rank::NewGroup made = make(local, groups, in_group);
    co_await rank.settle(made.ready);
    made_groups.replica = local == rank.id() % in_group ? made.group : made_groups.replica;
  }
  co_return made_groups;
}

bool UnitSharding::is_given(const Unit& unit, const OptimizerPlan& optimizer) const {
  return std::ranges::any_of(unit.state.parameters(), [&](size_t index) {
    const Replica::Parameter& parameter = replica_.parameters()[index];
    return parameter.trainable && optimizer.holds(parameter.place.layer);
  });
}

UnitSharding::StepTensors UnitSharding::tensors_of_step(const OptimizerPlan& optimizer) {
  StepTensors all;
  const auto add = [&all](OptimizedTensor& tensor) {
    all.tensors.push_back(&tensor);
    if (tensor.gradient.buffer != no_buffer) {
      all.gradients.push_back(tensor.gradient);
    }
    return tensor.gradient.buffer != no_buffer;
  };
  const bool takes_flat = optimizes_flat_ && !rule_of(optimizer.kind).is_elementwise();
  for (Unit& unit : units_) {
    bool is_held = false;
    for (ShardedUnit::Piece& piece : unit.state.pieces()) {
      const Replica::Parameter& parameter = replica_.parameters()[piece.parameter];
      if (!parameter.trainable || !optimizer.holds(parameter.place.layer)) {
        continue;
      }
      is_held = true;
      if (takes_flat) {
        continue;
      }
      all.given.push_back(piece.parameter);
      if (add(piece.tensor) && counts_in_norm(replica_, tensor_ranks_, piece.parameter)) {
        all.counted.push_back(piece.tensor.gradient);
      }
    }
    if (takes_flat && is_held && add(unit.state.flat_tensor())) {
      all.counted.push_back(unit.state.flat_tensor().gradient);
    }
  }
  for (const size_t index : ignored_) {
    Replica::Parameter& parameter = replica_.parameters()[index];
    if (parameter.trainable && optimizer.holds(parameter.place.layer)) {
      add(parameter.tensor);
    }
  }
  return all;
}

Program UnitSharding::optimizer_step(Rank& rank, const UpdateOptions& options) {
  const bool by_norm = options.clipping.algorithm == GradientClipping::Algorithm::norm;
  const OptimizerPlan optimizer = scheduled(plan().optimizers[options.optimizer], options);
  const StepTensors step = tensors_of_step(optimizer);
  const DeviceId device = offload_ == Offload::none ? DeviceId{0} : host_device;
  std::optional<ScaledStep> scaled;
  if (options.loss_scale != nullptr) {
    scaled.emplace(rank, *options.loss_scale, step.gradients, device, world_group, true);
  }
  if (by_norm && !plugin_without_norm_.empty()) {
    throw ProgramException(site_id(steps_.update),
                           "MisconfigurationException: `gradient_clip_algorithm='norm'` is "
                           "currently not supported for `" +
                               std::string(plugin_without_norm_) + "`");
  }
  check_tensors(options);
  SharedNorm norm{{{shard_group_, norm_elements()}}, site_id(steps_.share_norm)};
  norm.counted = &step.counted;
  if (by_norm && tensor_ranks_.ranks > 1) {
    sum_across_plan(norm, replica_, tensor_ranks_, step.given, step.gradients, norm_elements(),
                    site_id(steps_.update));
  }
  clips_by_own_norm_ = clips_by_own_norm_ || (shard_ranks_ > 1 && !clips_by_whole_norm_ && by_norm);
  clip_gradients(rank, options.clipping, step.gradients, device,
                 shard_ranks_ > 1 && clips_by_whole_norm_ ? &norm : nullptr);
  if (scaled) {
    const bool may_step = co_await scaled->may_step();
    if (!may_step) {
      co_return;
    }
  }
  has_stepped_[options.optimizer] = true;
  co_await update(rank, optimizer, step);
}

Program UnitSharding::update(Rank& rank, const OptimizerPlan& optimizer, const StepTensors& step) {
  updates_by_own_norms_ = updates_by_own_norms_ || (!rule_of(optimizer.kind).is_elementwise() &&
                                                    (shard_ranks_ > 1 || optimizes_flat_));
  const ComputeOptions there = place_of_update();
  for (Unit& unit : units_) {
    const bool is_flat = optimizes_flat_ && rule_of(optimizer.kind).is_elementwise();
    if (is_flat && unit.state.holds_gradients() && is_given(unit, optimizer)) {
      unit.state.make_state_of_padding(rank, optimizer, there);
    }
  }
  const Ticket updated =
      lockstep::optimizer_step(rank, optimizer, kernels_of(plan()), step.tensors, there);
  if (updated && there.on.device() == host_device) {
    co_await rank.settle(updated);  // the host computes it, and goes on when it is done
  }
}

int64_t UnitSharding::norm_elements() const {
  const auto trainable =
      std::count_if(replica_.parameters().begin(), replica_.parameters().end(),
                    [](const Replica::Parameter& parameter) { return parameter.trainable; });
  return norm_by_parameter_ ? std::max<int64_t>(1, trainable) : 1;
}

Program UnitSharding::zero_gradients(Rank& rank, size_t optimizer, bool set_to_none) {
  for (Unit& unit : units_) {
    unit.state.zero_gradients(rank, optimizer, set_to_none, site_id(steps_.zero_gradients));
  }
  if (zeroes_whole_gradients()) {
    replica_.zero_gradients(rank, optimizer, set_to_none);  // what no_sync left unsharded
  } else {
    zero_ignored(rank, optimizer, set_to_none);
  }
  co_return;
}

std::vector<HeldParameter> UnitSharding::held_parameters() {
  std::vector<HeldParameter> held;
  for (const Unit& unit : units_) {
    for (const ShardedUnit::Piece& piece : unit.state.pieces()) {
      held.push_back({piece.parameter, piece.first_element, piece.tensor.value});
    }
  }
  for (const size_t index : ignored_) {
    held.push_back({index, 0, replica_.parameters()[index].tensor.value});
  }
  std::sort(held.begin(), held.end(), [](const HeldParameter& a, const HeldParameter& b) {
    return a.parameter < b.parameter;
  });
  return held;
}

std::vector<KnownDifference> UnitSharding::known_differences() {
  std::vector<KnownDifference> known;
  const bool replaces = std::ranges::any_of(
      units_, [](const Unit& unit) { return unit.state.has_replaced_gradients(); });
  if (replaces) {
    known.push_back(
        {"with cpu_offload a gradient in host memory is replaced by that of the next "
         "backward, and not added to: gradients of micro-batches are lost",
         "leave out cpu_offload, or accumulate under no_sync alone, where gradients "
         "are added on the device (accumulate_grad_batches does so)"});
  }
  add_statistics_kept_apart(replica_, plan().world_size,
                            "FSDP shards and averages parameters; nothing sends the running "
                            "statistics of batch norm",
                            known);
  if (clips_by_own_norm_) {
    known.push_back(norm_of_own_part());
  }
  if (updates_by_own_norms_) {
    known.push_back(update_by_own_norms());
  }
  return known;
}

}  // namespace lockstep
