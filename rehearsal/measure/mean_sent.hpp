#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rehearsal/measure/measure.hpp"
#include "rehearsal/measure/step_sequence.hpp"

namespace lockstep::cli {

/// What a rank sends in a step on average over the steps of these numbers, of its own sequence.
std::optional<MeanSent> mean_sent_in(const Journal& journal, int32_t rank,
                                     const StepSequence& sequence,
                                     const std::vector<StepMark>& marks,
                                     const std::vector<int64_t>& numbers);

/// The same over all steps behind the one in which a thread of its own has begun to exchange.
std::optional<MeanSent> mean_sent_beside(const Journal& journal, int32_t rank,
                                         const StepSequence& sequence,
                                         const std::vector<StepMark>& marks);

}  // namespace lockstep::cli
