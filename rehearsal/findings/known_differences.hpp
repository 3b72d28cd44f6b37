#pragma once

#include <optional>
#include <string>

#include "model/strategy/known_difference.hpp"
#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Says in a finding of LS306 what the strategy is known to do otherwise than one device, and puts
/// what helps there in the place of the general advice.
void tell_known_differences(const OneRun& run, Finding& finding);

/// What makes values differ from those of one device by design; empty: nothing.
std::string designed_difference(const OneRun& run);

/// Whether replicas differ by design, for good or until they become alike again.
bool replicas_differ_by_design(const OneRun& run);
/// Whether every rank trains weights of its own by design.
bool replicas_have_weights_of_their_own(const OneRun& run);

/// Adds to a finding about replicas that differ why they do.
void tell_differences_of_replicas(const OneRun& run, Finding& finding);

/// Why no rank's first weights became those of all (LS314); nothing: they did, or all drew the
/// same.
std::optional<KnownDifference> unsent_first_weights(const OneRun& run);

/// Why ranks with the same weights have buffers of their own beside.
std::vector<KnownDifference> differences_of_buffers(const OneRun& run);

}  // namespace lockstep::cli
