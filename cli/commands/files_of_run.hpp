#pragma once

#include <string>

#include "cli/commands/commands.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// The option of the request that writes a file about one case: "--timeline"; empty: none.
std::string option_of_one_case(const Request& request);

/// Writes what the request asks for beside the answer. The answer reports what could not be
/// written.
void write_files_of_run(const Rehearsal& rehearsal, const Request& request,
                        const Deadline* deadline, Answer& answer);

}  // namespace lockstep::cli
