#include "rehearsal/progress.hpp"

#include <unistd.h>

#include "rehearsal/launch/interruption.hpp"
#include "rehearsal/text/printable.hpp"

namespace lockstep::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 1s;
constexpr auto pause = 200ms;

// A line that cannot be written is no reason to end.
void write_line(const std::string& line) {
  const std::string text = "\r" + line + "\033[K";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
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

double Progress::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Progress::expect(size_t count, const std::string& unit) {
  const std::lock_guard lock(guard_);
  line_.expect(static_cast<int64_t>(count), unit, now());
}

void Progress::case_begins(const std::string& name) {
  const std::lock_guard lock(guard_);
  line_.case_begins(printable(name));
}

void Progress::case_ends() {
  const std::lock_guard lock(guard_);
  line_.case_ends(now());
}

void Progress::phase(const std::string& what, std::optional<Amount> amount) {
  const std::lock_guard lock(guard_);
  line_.phase(printable(what), amount, now());
}

void Progress::step(int64_t done, std::optional<int64_t> total) {
  const std::lock_guard lock(guard_);
  line_.step("step", done, total, now());
}

void Progress::announce(const std::string& what) {
  const std::lock_guard lock(guard_);
  if (thread_.joinable() && !end_) {
    write_line(printable(what) + "\n");
  }
}

void Progress::show() {
  std::unique_lock lock(guard_);
  if (ended_.wait_for(lock, patience, [this] { return end_; })) {
    return;
  }
  do {
    write_line(line_.text(now()));
  } while (!ended_.wait_for(lock, pause, [this] { return end_; }));
  write_line("");
}

}  // namespace lockstep::cli
