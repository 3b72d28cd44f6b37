#pragma once

#include <string>

#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

/// The smallest settings of this scenario that still show a defect, as `--set` arguments; empty
/// when nothing smaller shows it or when looking would take too long.
std::string smallest_variant(const CaseSource& source, const Rehearsal& rehearsal,
                             const Finding& finding, const RehearseRequest& request);

}  // namespace lockstep::cli
