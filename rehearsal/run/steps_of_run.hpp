#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "rehearsal/progress.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// Reports how many steps of a training rank 0 has taken, and of how many.
class StepsOfRun {
 public:
  /// `progress` outlives it; null: nothing is reported.
  StepsOfRun(const OneRun& run, Progress* progress);
  void tell();

 private:
  std::shared_ptr<const RunLog> log_;
  Progress* progress_;
  std::optional<int64_t> planned_{};
  int64_t told_ = 0;
};

/// Whether the run is to be given up. What it returns also reports how far the run is, each time
/// that it is asked; the request's deadline and progress outlive it.
std::function<bool()> stop_asked(const OneRun& run, const RunRequest& request);

}  // namespace lockstep::cli
