#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace lockstep::backend {

/// Watches the calls in which a host thread may be held by its device, say behind a communication
/// that waits for a peer: when one lasts longer than the limit, calls `release`, once.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds limit, std::function<void()> release);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void call_begins();
  void call_ends() { called_at_.store(0, std::memory_order_release); }
  bool has_released() const { return released_.load(std::memory_order_acquire); }

 private:
  void watch();

  std::chrono::milliseconds limit_;
  std::function<void()> release_;
  std::atomic<int64_t> called_at_{0};  ///< nanoseconds of the steady clock; 0: in no call
  std::atomic<bool> released_{false};
  std::mutex mutex_;
  std::condition_variable wakes_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Marks one such call.
class WatchedCall {
 public:
  explicit WatchedCall(Watchdog& watchdog) : watchdog_(watchdog) { watchdog_.call_begins(); }
  ~WatchedCall() { watchdog_.call_ends(); }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  Watchdog& watchdog_;
};

}  // namespace lockstep::backend
