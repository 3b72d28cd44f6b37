#pragma once

#include <string>
#include <vector>

#include "rehearsal/case_source.hpp"
#include "rehearsal/sweep/sweep_cases.hpp"

namespace lockstep::cli {

/// What is known about the cases of a sweep before any of them runs.
struct CheckedCases {
  /// Of keys that are unknown and values of the wrong type; empty: none.
  std::vector<Diagnostic> diagnostics;
  Sources sources;
  std::vector<std::string> files;  ///< that the cases read, each once
};

/// Loads a case for each value of each key, of a long list the first thousand. A value is wrong
/// where the reader points at it in every one of some cases that have it; combinations that do not
/// go together are for their rows to tell.
CheckedCases check_cases(const CaseSource& source, const SweepCases& cases);

/// Over the content of these files, in this order. Throws SweepError where one cannot be read.
std::string digest_of_files(const std::vector<std::string>& files);

/// Reads each file once, so that all cases see the same. For several threads.
FileReader reading_once();

}  // namespace lockstep::cli
