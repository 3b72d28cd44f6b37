#pragma once

#include <optional>

#include "properties/finding.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// LS101 of a hung run under Horovod whose ranks wait in different calls that have no name: the
/// module's all_gather of some ranks, a reduction of the trainer of the others. Nothing where all
/// that are stuck wait in the same one.
std::optional<Finding> unnamed_waits(const OneRun& run);

}  // namespace lockstep::cli
