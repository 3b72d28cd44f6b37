#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "model/core/units.hpp"

namespace lockstep::backend {

/// What ranks of other processes do, as far as this one can learn it.
class Elsewhere {
 public:
  virtual ~Elsewhere() = default;
  /// This rank has got on, or works by itself.
  virtual void tell() = 0;
  /// Whether another rank has reported progress since the last call.
  virtual bool got_on() = 0;
};

/// Progress that all threads of a run report to the one that watches for a hang.
class Progress {
 public:
  Progress() : start_(std::chrono::steady_clock::now()) {}

  /// Since the start of the run.
  Time now() const {
    const auto passed = std::chrono::steady_clock::now() - start_;
    return Time(std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count()) * 1000;
  }

  /// Steady-clock time at the start of the run.
  int64_t clock_at_start_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count();
  }

  /// Something happened: an operation finished, a lane was resumed.
  void step() { steps_.fetch_add(1, std::memory_order_relaxed); }
  /// A thread works on its own (more > 0) or waits for others again: a slow rank is no hang.
  void work(int32_t more) { working_.fetch_add(more, std::memory_order_acq_rel); }

  /// Counts what the watcher waits for: threads of ranks, or operations in flight.
  void begin(std::atomic<int64_t>& count) { count.fetch_add(1, std::memory_order_acq_rel); }
  void end(std::atomic<int64_t>& count) {
    if (count.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const std::lock_guard lock(mutex_);
      reached_zero_.notify_all();
    }
  }

  /// Waits until the count is zero (true), or until nothing has happened for `limit` (false), here
  /// or where `elsewhere` looks, which may be null.
  bool wait_for_zero(const std::atomic<int64_t>& count, std::chrono::milliseconds limit,
                     Elsewhere* elsewhere = nullptr);

  std::atomic<int64_t> hosts{0};       ///< rank threads that have not ended
  std::atomic<int64_t> operations{0};  ///< submitted and not yet settled

 private:
  std::chrono::steady_clock::time_point start_;
  std::atomic<uint64_t> steps_{0};
  std::atomic<int32_t> working_{0};
  std::mutex mutex_;
  std::condition_variable reached_zero_;
};

/// Marks a stretch of code in which this thread works on its own.
class Working {
 public:
  explicit Working(Progress& progress) : progress_(progress) { progress_.work(1); }
  ~Working() { progress_.work(-1); }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  Progress& progress_;
};

/// Marks a stretch inside it in which this thread waits for others.
class Idle {
 public:
  explicit Idle(Progress& progress) : progress_(progress) { progress_.work(-1); }
  ~Idle() { progress_.work(1); }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;

 private:
  Progress& progress_;
};

}  // namespace lockstep::backend
