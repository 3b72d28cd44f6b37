#pragma once

#include "model/program/journal.hpp"

namespace lockstep::cli {

/// The share of [0, end) in which some operation ran in a stream of a rank's devices, over all
/// ranks: by the times of the journal, so an operation that waits for its peers counts.
double stream_occupancy(const Journal& journal, Time end);

}  // namespace lockstep::cli
