#include "backend/rank/progress.hpp"

#include <algorithm>

namespace lockstep::backend {

namespace {

/// When to tell other processes, and to ask them: a working rank tells twice between two looks.
class Talk {
 public:
  Talk(Elsewhere* elsewhere, std::chrono::milliseconds limit)
      : elsewhere_(elsewhere), limit_(limit) {}

  void works(std::chrono::steady_clock::time_point now) {
    has_looked_ = false;
    if (elsewhere_ != nullptr && now - told_ >= limit_ / 4) {
      elsewhere_->tell();
      told_ = now;
    }
  }
  // Reports from before the wait do not count.
  void waits(std::chrono::nanoseconds since) {
    if (elsewhere_ != nullptr && !has_looked_ && since >= limit_ / 4) {
      elsewhere_->got_on();
      has_looked_ = true;
    }
  }
  bool got_on() { return elsewhere_ != nullptr && elsewhere_->got_on(); }

 private:
  Elsewhere* elsewhere_;
  std::chrono::milliseconds limit_;
  std::chrono::steady_clock::time_point told_{};
  bool has_looked_ = false;
};

}  // namespace

bool Progress::wait_for_zero(const std::atomic<int64_t>& count, std::chrono::milliseconds limit,
                             Elsewhere* elsewhere) {
  using Clock = std::chrono::steady_clock;
  const auto look_every =
      std::clamp(limit / 8, std::chrono::milliseconds(1), std::chrono::milliseconds(20));
  std::unique_lock lock(mutex_);
  uint64_t seen = steps_.load();
  auto moved = Clock::now();
  Talk talk(elsewhere, limit);
  while (!reached_zero_.wait_for(lock, look_every, [&count] { return count.load() == 0; })) {
    const uint64_t steps = steps_.load();
    const auto now = Clock::now();
    if (steps != seen || working_.load() > 0) {
      seen = steps;
      moved = now;
      talk.works(now);
      continue;
    }
    talk.waits(now - moved);
    if (now - moved >= limit) {
      if (!talk.got_on()) {
        return false;
      }
      moved = now;
    }
  }
  return true;
}

}  // namespace lockstep::backend
