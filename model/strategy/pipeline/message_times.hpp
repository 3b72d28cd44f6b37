#pragma once

#include <vector>

#include "model/strategy/pipeline/pipeline_steps.hpp"

namespace lockstep {

/// When the last rank ends, in units of the caller, if messages take no time, but wait: a batch of
/// them begins once the computations before it in its rank's order have ended, and all messages
/// before it (they go through one stream), and ends when both sides of each have begun. `steps`: by
/// rank, as pipeline_steps() gives them. Throws ContractViolation where some rank never ends.
double makespan_with_messages(const std::vector<std::vector<PipelineStep>>& steps,
                              const PipelineDurations& durations);

}  // namespace lockstep
