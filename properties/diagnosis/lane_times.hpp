#pragma once

#include "model/program/journal.hpp"

namespace lockstep {

/// When the first operation of a lane was submitted.
Time first_issue(const LaneJournal& rows);

/// The earliest time at which the first lane of a rank can have been past a row of its own; 0 when
/// it has none.
Time time_past(const Journal& journal, int32_t rank, const Row& row);

}  // namespace lockstep
