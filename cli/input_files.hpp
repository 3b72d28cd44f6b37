#pragma once

#include <string>
#include <vector>

#include "cli/request.hpp"
#include "rehearsal/jobs.hpp"

namespace lockstep::cli {

/// Throws OutputError where one of the request's outputs could not be written. Makes the folder of
/// --logs.
void check_writable(const Request& request);

/// Throws OutputError where two of the request's outputs (-o, --timeline, --junit, --plot, --out,
/// --report, those of --logs) are one file, or where one is a file that the command line names: its
/// scenarios, a list of cases, its calibration, a report or journal of --reports. Also where links
/// lead there.
void check_outputs(const Request& request);

/// The same for what the scenarios of a command name: files that they include, of values, and
/// calibrations.
void check_outputs(const Request& request, const Collected& inputs);

}  // namespace lockstep::cli
