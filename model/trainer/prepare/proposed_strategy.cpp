#include "model/trainer/prepare/proposed_strategy.hpp"

#include <fmt/format.h>

#include "model/trainer/prepare/host_optimizer.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep {

namespace {

// One that is assumed is judged by nobody.
const Object* named_optimizer(const Scenario& scenario) {
  return scenario.optimizers.size() == 1 && scenario.optimizers.front().place.line > 0
             ? &scenario.optimizers.front()
             : nullptr;
}

}  // namespace

void ProposedStrategy::apply_to(Scenario& scenario) const {
  scenario.trainer->strategy = strategy;
  if (optimizer) {
    scenario.optimizers = {*optimizer};
  }
}

ProposedStrategy proposed_strategy(const StrategyEntry& entry, const DividedState& state,
                                   const Scenario& scenario, const Version& deepspeed) {
  ProposedStrategy proposed{{state.name, {}, {}}, {}, state.text()};
  if (!state.argument.empty()) {
    proposed.strategy.arguments.push_back({state.argument, PlainValue{state.value, {}}, {}});
  }
  const Object* const own = named_optimizer(scenario);
  if (own == nullptr || !state.offloads || !entry.takes_offloaded ||
      entry.takes_offloaded(own->name, deepspeed)) {
    return proposed;
  }
  std::optional<Object> on_host = host_optimizer(*own);
  if (on_host && entry.takes_offloaded(on_host->name, deepspeed)) {
    proposed.text += fmt::format(" with optimizer: {}", text_with(*on_host, {}));
    proposed.optimizer = std::move(on_host);
    return proposed;
  }
  proposed.strategy = object_of(entry.class_name, state.with_any_optimizer, {});
  proposed.text = text_with(proposed.strategy, {});
  return proposed;
}

}  // namespace lockstep
