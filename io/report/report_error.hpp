#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace lockstep {

/// A rank's report or journal is not one, is of a different run, or has another version.
class ReportError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Its bytes are not those that the rank wrote: changed, or cut short.
class DamagedReport final : public ReportError {
 public:
  /// `at`: the byte of the file at which the damaged part begins.
  DamagedReport(uint64_t at, const std::string& what)
      : ReportError("damaged at byte " + std::to_string(at) + ": " + what +
                    "\n   = copy it again from the host of its rank, or run the ranks again") {}
};

}  // namespace lockstep
