#pragma once

#include <vector>

#include "properties/transfer_counts.hpp"
#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

/// What a simulation has left out between the beginning and the end of a step, as a validation is
/// that stands in it, and how often each of these rows was taken so. Where whole steps
/// were left out, nothing of theirs belongs to this one.
std::vector<RowsAgain> left_out_within(const Journal& journal, int32_t rank,
                                       const std::vector<StepMark>& steps, const RowRange& rows);

/// All that it has left out there, whole steps among it.
std::vector<RowsAgain> all_left_out_within(const Journal& journal, int32_t rank,
                                           const RowRange& rows);

}  // namespace lockstep::cli
