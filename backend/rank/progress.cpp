#include "backend/rank/progress.hpp"

#include <algorithm>

namespace lockstep::backend {

bool Progress::wait_for_zero(const std::atomic<int64_t>& count, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const auto look_every =
      std::clamp(limit / 8, std::chrono::milliseconds(1), std::chrono::milliseconds(20));
  std::unique_lock lock(mutex_);
  uint64_t seen = steps_.load();
  auto moved = Clock::now();
  while (!reached_zero_.wait_for(lock, look_every, [&count] { return count.load() == 0; })) {
    const uint64_t steps = steps_.load();
    if (steps != seen || working_.load() > 0) {
      seen = steps;
      moved = Clock::now();
    } else if (Clock::now() - moved >= limit) {
      return false;
    }
  }
  return true;
}

}  // namespace lockstep::backend
