#pragma once

#include <cstdint>

namespace lockstep::cli {

/// What a long job on machines that fail consists of. Times are in seconds.
struct FailureModel {
  double mtbf_s = 0;        ///< of the job: that of a node divided by the nodes
  double checkpoint_s = 0;  ///< for which training stands still
  double restart_s = 0;     ///< from a failure until training continues
};

/// The part of the time that advances the training, where failures come at random (exponentially)
/// and each loses what was done since the last checkpoint (Daly 2006, the complete model):
/// i / (M exp(R/M) (exp((i + C)/M) - 1)) for an interval of i seconds of training.
double expected_goodput(const FailureModel& model, double interval_s);
/// sqrt(2 C M) (Young 1974).
double interval_by_young(const FailureModel& model);
/// Young's with the terms of higher order of Daly 2006; M where a checkpoint takes 2 M or more.
double interval_by_daly(const FailureModel& model);
/// The same share by failures drawn from a seed, over so many days of `horizon_s` each.
double drawn_goodput(const FailureModel& model, double interval_s, double horizon_s, int64_t days,
                     uint64_t seed);
/// The interval of the largest drawn goodput, of those between two bounds in steps of 5 %.
double drawn_optimum(const FailureModel& model, double horizon_s, int64_t days, uint64_t seed);

/// What is expected of a job at a failure rate, and how often it should save.
struct FailureForecast {
  FailureModel model;
  int64_t nodes = 1;
  double interval_s = 0;  ///< between checkpoints, of training; 0: it saves none
  double horizon_s = 86'400;
  double goodput = 0;   ///< in that time, by the formula; without checkpoints by the draws
  double drawn = 0;     ///< the same by drawn failures
  double failures = 0;  ///< expected within the horizon
  double by_young_s = 0;
  double by_daly_s = 0;
  double by_draws_s = 0;
};
/// With the intervals that save least; `interval_s` 0: every failure begins anew.
FailureForecast forecast_of(const FailureModel& model, int64_t nodes, double interval_s,
                            uint64_t seed);

}  // namespace lockstep::cli
