#include "rehearsal/measure/prediction_range.hpp"

#include <algorithm>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

namespace {

std::optional<Prediction> prediction_at(const Scenario& scenario, RunRequest request,
                                        sim::RangeEnd end) {
  request.end = end;
  const OneRun run = run_once(scenario, request);
  if (!run.ran || run.result.hung || !run.undecided.empty()) {
    return std::nullopt;
  }
  return measure(run).prediction;
}

}  // namespace

void add_range(const Scenario& scenario, const RunRequest& request, Prediction& prediction) {
  const auto low = prediction_at(scenario, request, sim::RangeEnd::low);
  const auto high = prediction_at(scenario, request, sim::RangeEnd::high);
  if (!low || !high) {
    return;
  }
  // Faster parts may meet on a link and be slower together: the prediction lies within all the
  // same.
  prediction.total_time_low = std::min(low->total_time, prediction.total_time);
  prediction.total_time_high = std::max(high->total_time, prediction.total_time);
  if (prediction.step_time && low->step_time && high->step_time) {
    prediction.step_time_low = std::min(*low->step_time, *prediction.step_time);
    prediction.step_time_high = std::max(*high->step_time, *prediction.step_time);
  }
}

}  // namespace lockstep::cli
