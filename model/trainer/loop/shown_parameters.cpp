#include "model/trainer/loop/shown_parameters.hpp"

#include <algorithm>

#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

namespace {

bool is_of_replicas(const KnownDifference& known) {
  return known.kind == DifferenceKind::of_replicas ||
         known.kind == DifferenceKind::of_replicas_for_now ||
         known.kind == DifferenceKind::of_replicas_for_good;
}

}  // namespace

void show_parameters(Strategy& strategy, RankLog& log) {
  if (!log.final_parameter_places.empty() ||
      std::ranges::none_of(strategy.known_differences(), is_of_replicas)) {
    return;
  }
  const std::vector<Slice> whole = strategy.replica().parameter_values();
  const std::vector<HeldParameter> held = strategy.held_parameters();
  const bool holds_all = std::ranges::equal(
      held, whole, [](const HeldParameter& one, const Slice& all) { return one.value == all; });
  if (holds_all) {
    log.final_parameter_places = whole;
  }
}

}  // namespace lockstep
