#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace {

using lockstep::cli::ExitCode;

// Kept for a handler, which may not allocate. The first call sets the line.
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

// A closed descriptor would be given to the next file that is opened, and our output go there.
void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) == -1) {
      // For reading alone: writing to it still fails, and is reported.
      static_cast<void>(open("/dev/null", O_RDONLY));
    }
  }
}

ExitCode print(const lockstep::cli::Answer& answer) {
  errno = 0;
  const bool printed =
      std::fwrite(answer.text.data(), 1, answer.text.size(), stdout) == answer.text.size() &&
      std::fflush(stdout) == 0;
  const int reason = errno;
  std::fwrite(answer.diagnostics.data(), 1, answer.diagnostics.size(), stderr);
  // A reader that has seen enough (`| head`) has closed the pipe: nothing went wrong.
  if (printed || reason == EPIPE) {
    return answer.code;
  }
  const std::string error =
      fmt::format("error: cannot write standard output: {}\n   = write to a file: -o FILE\n",
                  std::strerror(reason));
  std::fwrite(error.data(), 1, error.size(), stderr);
  return ExitCode::output_failed;
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_descriptors();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  line_that_repeats(arguments);
  std::signal(SIGINT, interrupted);
  std::signal(SIGABRT, aborted);
  std::signal(SIGPIPE, SIG_IGN);  // a write that fails is reported where it fails
  std::signal(SIGXFSZ, SIG_IGN);
  const lockstep::cli::Answer answer =
      lockstep::cli::execute_command_line(arguments, lockstep::cli::style_of_terminal());
  const ExitCode code = print(answer);
  if (answer.leaves_threads) {
    _exit(static_cast<int>(code));
  }
  return static_cast<int>(code);
}
