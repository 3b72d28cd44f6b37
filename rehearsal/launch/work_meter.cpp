#include "rehearsal/launch/work_meter.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace lockstep::cli {

namespace {

// Of all its threads, by /proc/PID/stat (proc(5)): fields 14 and 15, behind the name in brackets.
std::chrono::milliseconds processor_time(pid_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(stat, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) {
    return std::chrono::milliseconds(0);
  }
  std::istringstream fields(line.substr(name_end + 1));
  std::string skipped;
  constexpr int fields_between = 11;  // 3 to 13
  for (int field = 0; field < fields_between; ++field) {
    fields >> skipped;
  }
  int64_t user = 0;
  int64_t system = 0;
  fields >> user >> system;
  return std::chrono::milliseconds((user + system) * 1000 / sysconf(_SC_CLK_TCK));
}

}  // namespace

WorkMeter::WorkMeter(pid_t process)
    : process_(process), at_(std::chrono::steady_clock::now()), used_(processor_time(process)) {}

bool WorkMeter::worked() {
  const auto now = std::chrono::steady_clock::now();
  if (now - at_ < std::chrono::milliseconds(500)) {
    return false;
  }
  const std::chrono::milliseconds used = processor_time(process_);
  const bool worked = (used - used_) * 10 >= now - at_;
  at_ = now;
  used_ = used;
  return worked;
}

}  // namespace lockstep::cli
