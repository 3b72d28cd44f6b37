#include "rehearsal/sweep/run_sweep.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "rehearsal/case_workers.hpp"
#include "rehearsal/launch/interruption.hpp"

namespace lockstep::cli {

namespace {

constexpr std::chrono::milliseconds between_looks{20};

/// What the threads share. They hold it, so that it lives as long as the last of them.
class SharedSweep {
 public:
  SharedSweep(std::vector<int64_t> numbers, std::function<SweepRow(int64_t)> run,
              std::function<void(const SweepRow&)> done, Deadline deadline, size_t threads)
      : numbers_(std::move(numbers)),
        run_(std::move(run)),
        done_(std::move(done)),
        deadline_(std::move(deadline)),
        working_(threads) {}

  void work() {
    while (!over_.load(std::memory_order_relaxed)) {
      const size_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= numbers_.size() || deadline_.passed()) {
        break;
      }
      hand_over(run_(numbers_[index]));
    }
    const std::lock_guard lock(guard_);
    --working_;
    changed_.notify_all();
  }

  /// Whether all threads have ended; waits for a short time.
  bool wait_until_all_ended() {
    std::unique_lock lock(guard_);
    return changed_.wait_for(lock, between_looks, [this] { return working_ == 0; });
  }

  /// No row is handed over from now on.
  SweepEnd end() {
    const std::lock_guard lock(guard_);
    over_ = true;
    return {working_ > 0, failure_};
  }

 private:
  // A case that ran into the deadline says nothing about itself.
  void hand_over(const SweepRow& row) {
    const std::lock_guard lock(guard_);
    if (over_ || deadline_.passed()) {
      return;
    }
    try {
      done_(row);
    } catch (...) {
      failure_ = std::current_exception();
      over_ = true;
    }
  }

  std::vector<int64_t> numbers_;
  std::function<SweepRow(int64_t)> run_;
  std::function<void(const SweepRow&)> done_;
  Deadline deadline_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> over_{false};
  std::mutex guard_;
  std::condition_variable changed_;
  size_t working_;
  std::exception_ptr failure_;
};

}  // namespace

SweepEnd run_sweep(std::vector<int64_t> numbers, const std::function<SweepRow(int64_t)>& run,
                   std::function<void(const SweepRow&)> done, const Deadline& deadline,
                   int threads) {
  const size_t count = std::min(numbers.size(), static_cast<size_t>(std::max(1, threads)));
  const auto shared =
      std::make_shared<SharedSweep>(std::move(numbers), run, std::move(done), deadline, count);
  std::vector<std::jthread> workers;
  for (size_t worker = 0; worker < count; ++worker) {
    workers.emplace_back([shared] {
      leave_interruptions_to_others();
      shared->work();
    });
  }
  if (attend([&] { return shared->wait_until_all_ended(); }, deadline)) {
    deadline.interrupt();  // also behind the last case, where there is nothing left to end
  }
  const SweepEnd end = shared->end();
  for (std::jthread& worker : workers) {
    if (end.leaves_threads) {
      worker.detach();
    }
  }
  return end;
}

}  // namespace lockstep::cli
