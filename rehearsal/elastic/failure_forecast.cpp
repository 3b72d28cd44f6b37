#include "rehearsal/elastic/failure_forecast.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/random.hpp"

namespace lockstep::cli {

namespace {

// As many as bring about this many failures, within bounds.
constexpr double failures_drawn = 2000;
constexpr double least_days = 400;
constexpr double most_days = 20'000;
constexpr double step_of_intervals = 1.05;

/// Times between failures, the same for every interval that is tried on a day.
class FailureDraws {
 public:
  FailureDraws(double mtbf_s, uint64_t key) : mtbf_s_(mtbf_s), key_(key) {}
  double next() { return -mtbf_s_ * std::log1p(-random_unit(key_, turn_++)); }

 private:
  double mtbf_s_;
  uint64_t key_;
  uint64_t turn_ = 0;
};

// Seconds of training that are kept at the end of the horizon. What has been trained since the last
// checkpoint counts there: nothing has lost it. Without an interval nothing is ever saved.
double trained_in(const FailureModel& model, double interval_s, double horizon_s, uint64_t key) {
  FailureDraws draws(model.mtbf_s, key);
  const double period = interval_s + model.checkpoint_s;
  double now = 0;
  double kept = 0;
  for (;;) {
    const double fails_at = now + draws.next();
    const double end = std::min(fails_at, horizon_s);
    const double span = std::max(0.0, end - now);
    const double saved = interval_s > 0 ? std::floor(span / period) : 0;
    const double since = std::min(interval_s > 0 ? interval_s : span, span - saved * period);
    if (fails_at >= horizon_s) {
      return kept + saved * interval_s + since;
    }
    kept = interval_s > 0 ? kept + saved * interval_s : 0;
    // A failure during a restart begins it again.
    now = fails_at;
    double ready = now + model.restart_s;
    for (double again = now + draws.next(); again < ready; again = now + draws.next()) {
      now = again;
      ready = now + model.restart_s;
    }
    now = ready;
    if (now >= horizon_s) {
      return kept;
    }
  }
}

}  // namespace

double expected_goodput(const FailureModel& model, double interval_s) {
  const double per_interval = model.mtbf_s * std::exp(model.restart_s / model.mtbf_s) *
                              std::expm1((interval_s + model.checkpoint_s) / model.mtbf_s);
  return interval_s / per_interval;
}

double interval_by_young(const FailureModel& model) {
  return std::sqrt(2 * model.checkpoint_s * model.mtbf_s);
}

double interval_by_daly(const FailureModel& model) {
  if (model.checkpoint_s >= 2 * model.mtbf_s) {
    return model.mtbf_s;
  }
  const double ratio = model.checkpoint_s / (2 * model.mtbf_s);
  return interval_by_young(model) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - model.checkpoint_s;
}

double drawn_goodput(const FailureModel& model, double interval_s, double horizon_s, int64_t days,
                     uint64_t seed) {
  double trained = 0;
  for (int64_t day = 0; day < days; ++day) {
    trained +=
        trained_in(model, interval_s, horizon_s, random_key(seed, static_cast<uint64_t>(day)));
  }
  return trained / (horizon_s * static_cast<double>(days));
}

double drawn_optimum(const FailureModel& model, double horizon_s, int64_t days, uint64_t seed) {
  const double centre = std::max(interval_by_young(model), model.checkpoint_s);
  const double least = centre / 8;
  const double most = std::min(centre * 8, horizon_s);
  double best = centre;
  double best_goodput = 0;
  for (double interval = least; interval <= most; interval *= step_of_intervals) {
    const double goodput = drawn_goodput(model, interval, horizon_s, days, seed);
    if (goodput > best_goodput) {
      best_goodput = goodput;
      best = interval;
    }
  }
  return best;
}

FailureForecast forecast_of(const FailureModel& model, int64_t nodes, double interval_s,
                            uint64_t seed) {
  FailureForecast forecast;
  forecast.model = model;
  forecast.nodes = nodes;
  forecast.interval_s = interval_s;
  forecast.failures = forecast.horizon_s / model.mtbf_s;
  const auto days_drawn =
      static_cast<int64_t>(std::clamp(failures_drawn / forecast.failures, least_days, most_days));
  forecast.drawn = drawn_goodput(model, interval_s, forecast.horizon_s, days_drawn, seed);
  forecast.goodput = interval_s > 0 ? expected_goodput(model, interval_s) : forecast.drawn;
  if (model.checkpoint_s > 0) {
    forecast.by_young_s = interval_by_young(model);
    forecast.by_daly_s = interval_by_daly(model);
    forecast.by_draws_s = drawn_optimum(model, forecast.horizon_s, days_drawn, seed);
  }
  return forecast;
}

}  // namespace lockstep::cli
