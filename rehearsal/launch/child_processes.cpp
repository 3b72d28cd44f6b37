#include "rehearsal/launch/child_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

extern char** environ;

namespace lockstep::cli {

namespace {

constexpr size_t line_bytes_max = 64 * 1024;
constexpr int inherited_as = 3;

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) {
      fail(errno, "a pipe for a child's output");
    }
  }
  int ends[2] = {-1, -1};
};

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (std::none_of(variables.begin(), variables.end(),
                     [&name](const auto& variable) { return variable.first == name; })) {
      entries.push_back(text);
    }
  }
  for (const auto& [name, value] : variables) {
    entries.push_back(name + "=" + value);
  }
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

pid_t spawn(const ChildCommand& command, int output, int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  if (command.inherited_descriptor >= 0) {
    posix_spawn_file_actions_adddup2(&actions, command.inherited_descriptor, inherited_as);
  }
  // A group of its own: an interrupt at the terminal reaches the launcher, which ends them in
  // order.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  sigset_t none{};  // what the launcher keeps waiting must end its children
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  std::vector<std::string> arguments{command.program};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> variables = environment_with(command.variables);
  pid_t process = 0;
  const int error = posix_spawn(&process, command.program.c_str(), &actions, &attributes,
                                pointers_to(arguments).data(), pointers_to(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    fail(error, command.program);
  }
  return process;
}

}  // namespace

ChildProcesses::~ChildProcesses() { end_all(std::chrono::milliseconds(0)); }

void ChildProcesses::start(const ChildCommand& command) {
  Pipe output;
  Pipe errors;
  Child child;
  try {
    child.process = spawn(command, output.ends[1], errors.ends[1]);
  } catch (...) {
    for (const int end : {output.ends[0], output.ends[1], errors.ends[0], errors.ends[1]}) {
      close(end);
    }
    throw;
  }
  close(output.ends[1]);
  close(errors.ends[1]);
  child.output[0] = output.ends[0];
  child.output[1] = errors.ends[0];
  for (const int end : child.output) {
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
  children_.push_back(std::move(child));
}

bool ChildProcesses::all_ended() const {
  return std::all_of(children_.begin(), children_.end(),
                     [](const Child& child) { return child.end.ended; });
}

void ChildProcesses::run_until(Clock::time_point time, const std::function<bool()>& done) {
  constexpr std::chrono::milliseconds step{20};
  while (!all_ended() && !done() && Clock::now() < time) {
    poll_once(step);
    reap();
  }
}

void ChildProcesses::look() {
  poll_once(std::chrono::milliseconds(0));
  reap();
}

void ChildProcesses::poll_once(std::chrono::milliseconds wait) {
  std::vector<pollfd> open;
  std::vector<std::pair<size_t, int>> owners;
  for (size_t child = 0; child < children_.size(); ++child) {
    for (int which = 0; which < 2; ++which) {
      if (children_[child].output[which] >= 0) {
        open.push_back({children_[child].output[which], POLLIN, 0});
        owners.emplace_back(child, which);
      }
    }
  }
  if (poll(open.data(), open.size(), static_cast<int>(wait.count())) <= 0) {
    return;
  }
  for (size_t index = 0; index < open.size(); ++index) {
    if (open[index].revents != 0) {
      read_from(owners[index].first, owners[index].second);
    }
  }
}

void ChildProcesses::read_from(size_t child, int which) {
  Child& from = children_[child];
  std::array<char, 4096> buffer{};
  const ssize_t got = read(from.output[which], buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  std::string& line = from.line[which];
  const auto say = [&] {
    if (which == 1) {
      from.end.last_line = line;
    }
    output_(child, line);
    line.clear();
  };
  for (ssize_t at = 0; at < got; ++at) {
    const char letter = buffer[static_cast<size_t>(at)];
    if (letter != '\n') {
      line += letter;
    }
    if (letter == '\n' || line.size() >= line_bytes_max) {
      say();
    }
  }
  if (got <= 0) {
    if (!line.empty()) {
      say();
    }
    close(from.output[which]);
    from.output[which] = -1;
  }
}

void ChildProcesses::reap() {
  for (size_t index = 0; index < children_.size(); ++index) {
    Child& child = children_[index];
    int status = 0;
    if (child.end.ended || waitpid(child.process, &status, WNOHANG) != child.process) {
      continue;
    }
    // Output written before it ended is still in its pipes.
    for (int which = 0; which < 2; ++which) {
      for (int64_t turn = 0; child.output[which] >= 0 && turn < 256; ++turn) {
        read_from(index, which);
      }
    }
    child.end.ended = true;
    first_ended_ = first_ended_.value_or(index);
    child.end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    child.end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
}

void ChildProcesses::signal_all(int number) {
  for (const Child& child : children_) {
    if (!child.end.ended) {
      kill(-child.process, number);  // the group: what a rank started ends with it
    }
  }
}

void ChildProcesses::end_all(std::chrono::milliseconds grace) {
  const auto never = [] { return false; };
  if (!all_ended() && grace.count() > 0) {
    signal_all(SIGTERM);
    run_until(Clock::now() + grace, never);
  }
  if (!all_ended()) {
    signal_all(SIGKILL);
    run_until(Clock::now() + std::chrono::seconds(10), never);
  }
  for (Child& child : children_) {
    for (int& end : child.output) {
      if (end >= 0) {
        close(end);
        end = -1;
      }
    }
  }
}

}  // namespace lockstep::cli
