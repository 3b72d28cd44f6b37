#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/rehearsal.hpp"
#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// Rehearses variants of a training and says what they gave: other buckets, batches, precision, and
/// the largest batch whose memory fits. Each figure comes from a run of its own. How much is tried
/// depends on the scenario alone, never on the clock, so the answer is the same every time; nothing
/// is tried where a run is so long that the variants would take many seconds.
Advice advise(const Rehearsal& rehearsal, const RehearseRequest& request);

}  // namespace lockstep::cli
