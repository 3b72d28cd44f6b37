#pragma once

#include <string>

#include "model/strategy/arguments.hpp"
#include "model/strategy/exchange/averaging/model_averager.hpp"

namespace lockstep {

/// Whether `model_averager` or `outer_optimizer` is given: they take the place of the averager that
/// Lightning makes for a PostLocalSGDState.
bool arguments_name_averager(const StrategyArguments& arguments);

/// Reads them. `start_iteration`: in which step a hook stops to exchange gradients among all ranks.
/// Throws ArgumentProblem.
void add_averager(const StrategyArguments& arguments, int64_t start_iteration,
                  AveragingOptions& options);

}  // namespace lockstep
