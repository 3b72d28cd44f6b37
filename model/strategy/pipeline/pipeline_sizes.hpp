#pragma once

#include <cstdint>
#include <string>

#include "model/strategy/pipeline/pipeline_plan.hpp"

namespace lockstep {

/// The argument, or the default, which is 0 where that is allowed. Throws ArgumentProblem.
int32_t count_argument(const StrategyArguments& arguments, const std::string& name,
                       int64_t otherwise);
/// The argument `schedule`. Throws ArgumentProblem.
PipelineScheduleKind schedule_argument(const StrategyArguments& arguments);

}  // namespace lockstep
