#pragma once

#include <string>

#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Writes what the loggers and monitors of a training would have recorded: metrics.csv, monitor.csv
/// and a file of TensorBoard events. Makes the folder. Returns what was written, as sentences for
/// the user. Throws OutputError.
std::string write_logs(const Rehearsal& rehearsal, const std::string& folder,
                       const Deadline* deadline);

/// The files that it writes into a folder.
std::vector<std::string> log_files(const std::string& folder);

}  // namespace lockstep::cli
