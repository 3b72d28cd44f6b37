#pragma once

#include <string>

#include "model/scenario/scenario.hpp"
#include "model/strategy/registry.hpp"
#include "model/trainer/prepare/prepare.hpp"

namespace lockstep {

/// A configuration of another framework is replaced in the scenario by the strategy that it comes
/// to on so many ranks, which a note says. Returns the name of the strategy that is left: `named`,
/// where that is one itself; empty, where there is a problem.
std::string replace_by_strategy_behind(Preparation& preparation, Scenario& scenario,
                                       const StrategyRegistry& registry, const std::string& named,
                                       int64_t ranks);

}  // namespace lockstep
