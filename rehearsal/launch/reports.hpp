#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rehearsal/launch/real_run.hpp"

namespace lockstep::cli {

/// "rank-3.report".
std::string report_name(int32_t rank);
/// "rank-3.journal": what a rank that left no report had done.
std::string journal_name(int32_t rank);

/// How a rank ended that left no report. May throw RealRunFailed.
using EndOfSilent = std::function<RankEnd(int32_t rank)>;

/// Puts together what the ranks of one run left in a folder. Writes their logs into the
/// preparation's. Throws RealRunFailed when a report cannot be read.
RealRun gather_reports(const std::string& folder, const Preparation& preparation,
                       const EndOfSilent& end_of_silent);

/// The report of a rank; nothing: it left none.
using ReportOf = std::function<std::optional<std::vector<uint8_t>>(int32_t rank)>;

/// Combines reports from other places. `folder` holds the journals.
RealRun put_together(const ReportOf& report_of, const std::string& folder,
                     const Preparation& preparation, const EndOfSilent& end_of_silent);

}  // namespace lockstep::cli
