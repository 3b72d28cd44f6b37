#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace {

using lockstep::cli::ExitCode;

// Kept for a handler, which may not allocate. The first call tells the line.
const std::string& line_that_repeats(const std::vector<std::string>& arguments) {
  static const std::string line =
      "please report this bug of lockstep with the scenario and this line:\n  " +
      lockstep::cli::repeat_line(arguments) + "\n";
  return line;
}

extern "C" void interrupted(int) { _exit(static_cast<int>(ExitCode::interrupted)); }

extern "C" void aborted(int) {
  const std::string& line = line_that_repeats({});
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) {
    _exit(static_cast<int>(ExitCode::bug));
  }
  _exit(static_cast<int>(ExitCode::bug));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  line_that_repeats(arguments);
  std::signal(SIGINT, interrupted);
  std::signal(SIGABRT, aborted);
  std::signal(SIGPIPE, SIG_IGN);
  const lockstep::cli::Answer answer =
      lockstep::cli::execute_command_line(arguments, lockstep::cli::style_of_terminal());
  std::fwrite(answer.text.data(), 1, answer.text.size(), stdout);
  std::fflush(stdout);
  std::fwrite(answer.diagnostics.data(), 1, answer.diagnostics.size(), stderr);
  return static_cast<int>(answer.code);
}
