#include "backend/device/watchdog.hpp"

#include <algorithm>

namespace lockstep::backend {

namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Watchdog::Watchdog(std::chrono::milliseconds limit, std::function<void()> release)
    : limit_(limit), release_(std::move(release)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakes_.notify_all();
  thread_.join();
}

void Watchdog::call_begins() { called_at_.store(now_ns(), std::memory_order_release); }

void Watchdog::watch() {
  const auto look_every = std::max(limit_ / 8, std::chrono::milliseconds(1));
  std::unique_lock lock(mutex_);
  while (!wakes_.wait_for(lock, look_every, [this] { return stopping_; })) {
    const int64_t called_at = called_at_.load(std::memory_order_acquire);
    const auto limit_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(limit_).count();
    if (called_at != 0 && now_ns() - called_at > limit_ns && !has_released()) {
      released_.store(true, std::memory_order_release);
      release_();
    }
  }
}

}  // namespace lockstep::backend
