#pragma once

#include "properties/invariants/equals_single_device.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What a run computes of each device's part of a batch and one device of the whole: a difference
/// from one device is then expected.
void tell_what_is_divided(const OneRun& run, EqualityRule& rule);

}  // namespace lockstep::cli
