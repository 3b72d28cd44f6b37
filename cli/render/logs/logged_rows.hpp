#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/render/over_time/step_times.hpp"
#include "rehearsal/findings/logged_metrics.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

/// What rank 0's logger gets at once, and when.
struct LoggedRow {
  int64_t step = 0;
  std::optional<int64_t> epoch;
  std::optional<Time> time;  ///< nothing: of a batch of a validation, whose time is not known
  /// Values that were computed, learning rates and throughput, by key.
  std::map<std::string, double> values;
};

struct LoggedRows {
  std::vector<LoggedRow> rows;
  int64_t every_steps = 0;         ///< `log_every_n_steps`
  int64_t stride = 1;              ///< one of so many of these rows is kept
  std::vector<std::string> empty;  ///< keys whose values are not computed
};

/// Where a run stands in a training: at its begin, or, of an attempt that was resumed, within.
struct PlaceInTraining {
  int64_t first_step = 0;
  Time began{};
  int64_t steps_of_epoch = 0;  ///< 0: by the run's own epochs
};

/// `valued`: a run of the same scenario that computes values where `run` has none; null: there is
/// none. Times are those of `run`, after `place.began`.
LoggedRows logged_rows(const OneRun& run, const OneRun* valued, const StepTimes& times,
                       const PlaceInTraining& place, int64_t rows_max);

}  // namespace lockstep::cli
