#pragma once

#include <optional>
#include <string>

#include "model/scenario/scenario.hpp"
#include "model/strategy/registry.hpp"

namespace lockstep {

/// A strategy in the form in which a training may take it, and what else has to change for it.
struct ProposedStrategy {
  Object strategy;
  std::optional<Object> optimizer{};  ///< in place of the scenario's
  std::string text{};                 ///< as a scenario has it, with the optimizer

  void apply_to(Scenario& scenario) const;
};

/// Where the strategy would refuse the training's optimizer because it offloads, the optimizer in
/// host memory takes its place, or the strategy has the argument that takes any.
ProposedStrategy proposed_strategy(const StrategyEntry& entry, const DividedState& state,
                                   const Scenario& scenario, const Version& deepspeed);

}  // namespace lockstep
