#pragma once

#include <cstdint>

namespace lockstep::cli {

/// Exit codes for the shell. Stable: scripts rely on them.
enum class ExitCode : uint8_t {
  ok = 0,
  findings = 1,  ///< an error finding, or an expectation that was not met
  usage = 2,
  bad_input = 3,
  undecided = 4,  ///< a limit was hit; never printed as success
  missing_capability = 5,
  real_run_failed = 6,  ///< for a reason that is not in the scenario
  damaged_file = 7,     ///< bytes of a report or journal are not those that its rank wrote
  bug = 70,
  output_failed = 74,  ///< the result exists and could not be written (sysexits: EX_IOERR)
  interrupted = 130,
};

/// Exit code of a command over several cases: the first of 3, 1, 7, 6, 5, 4 that any of them had.
constexpr ExitCode worse(ExitCode left, ExitCode right) {
  for (const ExitCode code :
       {ExitCode::bad_input, ExitCode::findings, ExitCode::damaged_file, ExitCode::real_run_failed,
        ExitCode::missing_capability, ExitCode::undecided}) {
    if (left == code || right == code) {
      return code;
    }
  }
  return left;
}

}  // namespace lockstep::cli
