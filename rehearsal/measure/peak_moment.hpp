#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/journal.hpp"
#include "rehearsal/measure/measure.hpp"
#include "rehearsal/results.hpp"

namespace lockstep::cli {

/// When a rank allocated `peak`, as its journal shows it; `steps` are those of the rank. Nothing
/// where the buffer is none of the rank's main lane.
std::optional<PeakMoment> moment_of(const Journal& journal, int32_t rank, BufferId peak,
                                    const std::vector<StepMark>& steps);

/// "optimizer_step", as JSON names it.
std::string_view name_of(PeakMoment::Phase phase);
/// "in the backward of step 3", "while a checkpoint is saved, after step 8".
std::string text_of(const PeakMoment& moment);

}  // namespace lockstep::cli
