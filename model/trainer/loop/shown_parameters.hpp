#pragma once

#include "model/strategy/strategy.hpp"
#include "model/trainer/logging/run_log.hpp"

namespace lockstep {

/// Before the end of a step is marked: where replicas may differ by what the strategy says of
/// itself, says in the log where this one is, so that an observer of steps can compare them.
void show_parameters(Strategy& strategy, RankLog& log);

}  // namespace lockstep
