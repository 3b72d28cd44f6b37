#pragma once

#include <optional>
#include <string>

#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// An EarlyStopping that ended the training by values that neither the scenario gives nor the
/// simulation computes: those of the real training would have decided otherwise.
struct MadeUpStop {
  std::string monitor;
  int64_t epoch = 0;
  SourcePlace place{};  ///< of the callback
};
std::optional<MadeUpStop> made_up_stop(const OneRun& run);

/// The training without any stop by EarlyStopping: each callback still compares, with the same
/// communication.
Scenario to_planned_end(const OneRun& run);

}  // namespace lockstep::cli
