#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/render/json.hpp"
#include "cli/render/over_time/moments.hpp"
#include "rehearsal/rehearsal.hpp"

namespace lockstep::cli {

/// Shares of one sample period, 0 .. 1.
struct UtilizationSample {
  Time until{};
  /// As nvidia-smi counts: some kernel ran, also one of NCCL that only waits for its peers.
  double kernel_ran = 0;
  double working = 0;  ///< without the waiting
  std::array<double, moment_count> share{};
  double evaluating = 0;
};

/// Samples in a row that work less than a steady step, for the same reason.
struct UtilizationDip {
  Time begin{};
  Time end{};
  double working = 0;
  Moment cause = Moment::nothing;  ///< what took most of the rest
  bool evaluates = false;          ///< what it lacks is mostly within a validation or test

  /// "validation, waiting for data".
  std::string label() const;
};

/// The GPU of one rank over the whole run.
struct Utilization {
  int32_t rank = 0;
  Time period{};
  std::vector<UtilizationSample> samples;
  double kernel_ran = 0;  ///< over the whole run
  double working = 0;
  double usual = 0;  ///< `working` of a steady step
  std::vector<UtilizationDip> dips;
};

/// The smallest of 1, 2 and 5 times a power of ten that is at least this.
Time round_period(Time least);

/// What is predicted is one simulated run, and that is the run of the rehearsal: no launcher has
/// started ranks again, and no placeholder ended it early.
bool is_of_one_run(const Rehearsal& rehearsal);

/// Nothing where nothing is predicted, no GPU is used, or a launcher has started ranks again; of
/// ranks that others stand for, what those do. A sample is no shorter than a step.
std::optional<Utilization> utilization_of(const Rehearsal& rehearsal, int32_t rank,
                                          int64_t samples_max);
/// The same of any simulated run, whatever became of it.
std::optional<Utilization> utilization_of(const OneRun& run, const Prediction& prediction,
                                          int32_t rank, int64_t samples_max);

/// For `run -v`: a line of blocks, and the longest dips.
std::string render_utilization(const Rehearsal& rehearsal);
Json utilization_json(const Rehearsal& rehearsal);

}  // namespace lockstep::cli
