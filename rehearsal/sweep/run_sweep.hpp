#pragma once

#include <exception>
#include <functional>
#include <vector>

#include "io/sweep/sweep_row.hpp"
#include "rehearsal/rehearse.hpp"

namespace lockstep::cli {

struct SweepEnd {
  /// Threads still run: the process must end without unwinding what they use.
  bool leaves_threads = false;
  std::exception_ptr failure;  ///< of `done`, else null
};

/// Runs these cases on so many threads, and hands each row to `done` as it comes, to one call at a
/// time. Once the deadline has passed (also because the user interrupts: SIGINT, SIGTERM, SIGHUP)
/// no case begins, and rows of those that were under way are dropped. `run` is copied: what it uses
/// must outlive the threads.
SweepEnd run_sweep(std::vector<int64_t> numbers, const std::function<SweepRow(int64_t)>& run,
                   std::function<void(const SweepRow&)> done, const Deadline& deadline,
                   int threads);

}  // namespace lockstep::cli
