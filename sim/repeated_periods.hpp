#pragma once

#include <span>
#include <vector>

#include "model/program/repetition.hpp"
#include "sim/known_states.hpp"

namespace lockstep::sim {

/// A way as periods that were simulated one after the other. `begin`: of the way.
std::vector<RepeatedPeriods> repeated_periods(const KnownStates::Way& way, Time begin);

/// How long they take, without entries that repeat others.
Time total_of(std::span<const RepeatedPeriods> all);

/// What comes again and again is said once, with how often it does.
std::vector<RepeatedPeriods> folded(std::span<const RepeatedPeriods> all);

}  // namespace lockstep::sim
