#include "rehearsal/run/servers.hpp"

#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep::cli {

RankSet servers_of(const OneRun& run) {
  RankSet servers;
  const Preparation& preparation = run.preparation;
  const StrategyEntry* const entry = strategies().find(preparation.registered_strategy);
  if (entry == nullptr || !entry->membership || !preparation.scenario->trainer) {
    return servers;
  }
  const std::optional<Object>& strategy = preparation.scenario->trainer->strategy;
  const StrategyArguments arguments =
      strategy ? strategy_arguments_of(*strategy) : StrategyArguments();
  for (int32_t rank = 0; rank < preparation.options.world_size; ++rank) {
    if (!entry->membership_of(arguments, place_of(preparation.options, rank)).runs_trainer) {
      servers.add(rank);
    }
  }
  return servers;
}

}  // namespace lockstep::cli
