#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace lockstep::bench {

/// How a command ended, and what it used.
struct EndedCommand {
  int status = -1;
  rusage used{};
  double cpu_s() const {
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
  }
};

/// Runs it to its end; what it prints is dropped. Status -1: it could not be started.
inline EndedCommand run_command(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t quiet{};
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int failed =
      posix_spawn(&process, arguments[0], &quiet, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&quiet);
  EndedCommand ended;
  if (failed == 0) {
    wait4(process, &ended.status, 0, &ended.used);
  }
  return ended;
}

}  // namespace lockstep::bench
