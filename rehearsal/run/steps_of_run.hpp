#pragma once

#include <cstdint>
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

}  // namespace lockstep::cli
