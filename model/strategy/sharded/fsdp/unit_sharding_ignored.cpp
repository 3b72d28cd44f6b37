// Parameters that the wrapper leaves alone.
#include <fmt/format.h>

#include <algorithm>

#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/sharded/fsdp/unit_sharding.hpp"

namespace lockstep {

void UnitSharding::make_ignored(Rank& rank, const WrapPolicy& wrap) {
  const std::vector<bool> ignored = ignored_layers(replica_.network(), wrap);
  constexpr uint64_t variant = 0;  // seed_everything: every rank has drawn the same model
  for (size_t index = 0; index < replica_.parameters().size(); ++index) {
    Replica::Parameter& parameter = replica_.parameters()[index];
    if (!ignored[parameter.place.layer]) {
      continue;
    }
    parameter.tensor.value =
        rank.allocate(Purpose::parameter, plan().parameter_dtype, elements_of(index));
    if (replica_.writes_values()) {
      rank.write(parameter.tensor.value, replica_.state().initial_value(index, variant));
    }
    ignored_.push_back(index);
  }
}

void UnitSharding::zero_ignored(Rank& rank, size_t optimizer, bool set_to_none) {
  std::vector<Slice> filled;
  for (const size_t index : ignored_) {
    Replica::Parameter& parameter = replica_.parameters()[index];
    if (!plan().optimizers[optimizer].holds(parameter.place.layer)) {
      continue;
    }
    if (set_to_none) {
      replica_.forget_gradient(rank, parameter);
    } else if (parameter.tensor.gradient.buffer != no_buffer) {
      filled.push_back(parameter.tensor.gradient);
    }
  }
  if (!filled.empty()) {
    elementwise(rank, Kernel::fill, {}, filled, 0, {}, site_id(steps_.zero_gradients));
  }
}

bool UnitSharding::updates_shards(size_t optimizer) const {
  return std::ranges::any_of(units_, [&](const Unit& unit) {
    return unit.state.holds_gradients() &&
           std::ranges::any_of(unit.state.parameters(), [&](size_t index) {
             const Replica::Parameter& parameter = replica_.parameters()[index];
             return parameter.trainable &&
                    plan().optimizers[optimizer].holds(parameter.place.layer);
           });
  });
}

bool UnitSharding::updates_ignored(size_t optimizer) const {
  return std::ranges::any_of(ignored_, [&](size_t index) {
    const Replica::Parameter& parameter = replica_.parameters()[index];
    return parameter.trainable && parameter.tensor.gradient.buffer != no_buffer &&
           plan().optimizers[optimizer].holds(parameter.place.layer);
  });
}

void UnitSharding::forget_optimizer(Rank& rank) {
  for (Unit& unit : units_) {
    unit.state.forget_optimizer(rank);
  }
  for (const size_t index : ignored_) {
    OptimizedTensor& tensor = replica_.parameters()[index].tensor;
    for (const Slice& state : tensor.state) {
      rank.release(state);
    }
    tensor.state.clear();
    tensor.steps = 0;
  }
}

// Their gradients pass no hook of the wrapper, and nobody else reduces them.
void UnitSharding::add_ignored_difference(std::string_view argument,
                                          std::vector<KnownDifference>& known) const {
  for (const size_t index : ignored_) {
    const Replica::Parameter& parameter = replica_.parameters()[index];
    if (parameter.trainable && plan().world_size != 1) {
      known.push_back(
          {fmt::format("`{}` leaves out `{}`: its gradients are not reduced, and every rank trains "
                       "it by its own samples",
                       argument, replica_.network().parameter_name(parameter.place)),
           "freeze it, or leave it to a unit", DifferenceKind::of_replicas});
    }
  }
}

}  // namespace lockstep
