#pragma once

#include <string>

#include "model/core/site.hpp"
#include "model/trainer/logging/run_log.hpp"

namespace lockstep {

// Each adds a finding at the statement and ends the rank's program by ProgramException.

/// An expression or a statement has no meaning on this rank. `remedy` may be empty.
[[noreturn]] void fail_at(RankLog& log, SiteId site, const std::string& message,
                          const std::string& remedy);
/// LS310: tensors are not where an operation needs them.
[[noreturn]] void fail_device_at(RankLog& log, SiteId site, const std::string& message,
                                 const std::string& remedy);
/// What the user may do and nobody modelled: the run then says nothing (exit 5).
[[noreturn]] void lack_at(RankLog& log, SiteId site, const std::string& message,
                          const std::string& remedy = "");

}  // namespace lockstep
