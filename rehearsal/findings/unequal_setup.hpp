#pragma once

#include <optional>

#include "rehearsal/findings/finding_cause.hpp"

namespace lockstep::cli {

/// What ranks are set up with differently, because the scenario says so: an argument of the
/// strategy with `on_ranks`, or a layer with `frozen_on`.
std::optional<FindingCause> unequal_setup(const OneRun& run);

}  // namespace lockstep::cli
