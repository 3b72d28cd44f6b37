#pragma once

#include <vector>

#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

// Arguments of torch's schedulers that are more than numbers. Those of wrong values are problems.

/// Of OneCycleLR or CyclicLR.
CycleSettings cycle_settings_of(Preparation& preparation, const Object& scheduler);
/// Of LambdaLR, MultiplicativeLR, or a function of transformers that makes a LambdaLR.
RateFactor rate_factor_of(Preparation& preparation, const Object& scheduler);
/// Those that SequentialLR or ChainedScheduler is given, in their order.
std::vector<Object> held_schedulers(const Object& scheduler);
/// What its constructor asks of them.
void check_held(Preparation& preparation, const Object& scheduler,
                const SchedulerSettings& settings);
/// A scheduler that cycles the momentum sets its optimizer's at once; one without it is refused.
void take_cycled_momentum(Preparation& preparation, const Object& scheduler,
                          const SchedulerSettings& settings, TrainingProgram& program);

}  // namespace lockstep
