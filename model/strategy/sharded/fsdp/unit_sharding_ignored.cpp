// Parameters that the wrapper leaves alone.
#include <fmt/format.h>

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
      rank.write(parameter.tensor.value, replica_.initial_value(index, variant));
    }
    ignored_.push_back(index);
  }
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
