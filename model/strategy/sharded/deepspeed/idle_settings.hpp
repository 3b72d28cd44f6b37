#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/strategy/arguments.hpp"
#include "model/strategy/plan.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"

namespace lockstep {

/// Arguments of DeepSpeedStrategy, or keys of its `config`, that say something and that DeepSpeed
/// does not read in such a training; each with why.
std::vector<std::pair<std::string, std::string>> idle_settings(const TrainingPlan& plan,
                                                               const StrategyArguments& arguments,
                                                               const DeepSpeedOptions& options);

}  // namespace lockstep
