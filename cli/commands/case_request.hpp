#pragma once

#include <string>

#include "cli/commands/commands.hpp"
#include "rehearsal/jobs.hpp"

namespace lockstep::cli {

/// The file and case that an argument of a command names, with the request's settings.
CaseSource source_of(const Request& request, const std::string& argument);

/// The output of a command for a file that is not a scenario.
Answer bad_input(const Request& request, const Collected& collected);

/// How many cases run at the same time: as asked, else one a core; ranks that are threads already
/// fill the machine.
int threads_of(const Request& request);

/// Where the user has interrupted the command: says that what is shown is partial, and exits 130.
void mark_interrupted(Answer& answer, const Deadline& deadline);

}  // namespace lockstep::cli
