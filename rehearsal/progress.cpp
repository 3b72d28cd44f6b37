#include "rehearsal/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "rehearsal/launch/interruption.hpp"
#include "rehearsal/text/printable.hpp"

namespace lockstep::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 1s;
constexpr auto pause = 200ms;
constexpr size_t width_max = 79;

// A line that cannot be written is no reason to end.
void write_line(const std::string& line) {
  const std::string text = "\r" + line + "\033[K";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string shortened(const std::string& line) {
  if (line.size() <= width_max) {
    return line;
  }
  size_t end = width_max - 2;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0) == 0x80) {
    --end;  // not within a character
  }
  return line.substr(0, end) + "..";
}

}  // namespace

Progress::Progress(bool shown) {
  if (shown) {
    thread_ = std::thread([this] {
      leave_interruptions_to_others();
      show();
    });
  }
}

Progress::~Progress() { end(); }

void Progress::end() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const std::lock_guard lock(guard_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Progress::expect_cases(size_t count) {
  const std::lock_guard lock(guard_);
  cases_ = count;
}

void Progress::case_begins(const std::string& name) {
  const std::lock_guard lock(guard_);
  case_ = printable(name);
  step_.clear();
}

void Progress::case_ends() {
  const std::lock_guard lock(guard_);
  ++done_;
}

void Progress::step(const std::string& what) {
  const std::lock_guard lock(guard_);
  step_ = printable(what);
}

void Progress::announce(const std::string& what) {
  const std::lock_guard lock(guard_);
  if (thread_.joinable() && !end_) {
    write_line(printable(what) + "\n");
  }
}

std::string Progress::line(double seconds) const {
  std::string text = fmt::format("{:.0f} s", seconds);
  if (cases_ > 1) {
    text += fmt::format(" · {} of {} cases done", done_, cases_);
  }
  if (!case_.empty()) {
    text += " · " + case_;
  }
  return shortened(step_.empty() ? text : text + " · " + step_);
}

void Progress::show() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(guard_);
  if (ended_.wait_for(lock, patience, [this] { return end_; })) {
    return;
  }
  do {
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin;
    write_line(line(gone.count()));
  } while (!ended_.wait_for(lock, pause, [this] { return end_; }));
  write_line("");
}

}  // namespace lockstep::cli
