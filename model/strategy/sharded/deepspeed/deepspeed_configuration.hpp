#pragma once

#include <string>

#include "model/strategy/registry.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"

namespace lockstep {

/// Whether `config` is a map, also an empty one, beside which Lightning's class makes none.
bool has_deepspeed_configuration(const StrategyArguments& arguments);
/// What the argument `config` holds. Throws ArgumentProblem for what cannot be, is refused or is
/// not modelled.
DeepSpeedOptions deepspeed_configuration(const StrategyArguments& arguments);
/// `loss_scale` and its relatives, each behind the prefix.
LossScaler::Options deepspeed_loss_scale(const StrategyArguments& arguments,
                                         const std::string& prefix);
/// `value`, where it is large enough.
int64_t argument_at_least(int64_t least, const std::string& name, int64_t value);

}  // namespace lockstep
