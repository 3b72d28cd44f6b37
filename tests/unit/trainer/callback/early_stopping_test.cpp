// Expected values are worked out by hand from early_stopping.py, _evaluate_stopping_criteria.
#include "model/trainer/callback/early_stopping.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <vector>

using namespace lockstep;

namespace early_stopping_test {

namespace {

// At which value training stops; -1: never.
int stops_at(const EarlyStoppingSettings& settings, const std::vector<double>& values) {
  StoppingCriteria criteria(settings);
  for (size_t i = 0; i < values.size(); ++i) {
    if (criteria.stops(values[i])) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

EarlyStoppingSettings patient(int64_t patience) {
  EarlyStoppingSettings settings;
  settings.patience = patience;
  return settings;
}

}  // namespace

TEST_CASE("training stops after `patience` values without improvement") {
  CHECK(stops_at(patient(2), {1, 3, 2, 4}) == 2);
  CHECK(stops_at(patient(2), {3, 2, 1, 0}) == -1);
  CHECK(stops_at(patient(1), {3, 3}) == 1);
  CHECK(stops_at(patient(3), {3, 4, 4, 2, 3, 3, 3}) == 6);
}

TEST_CASE("with mode max more is better") {
  EarlyStoppingSettings settings = patient(2);
  settings.mode = MonitorMode::max;
  CHECK(stops_at(settings, {1, 2, 3}) == -1);
  CHECK(stops_at(settings, {3, 2, 1}) == 2);
}

TEST_CASE("an improvement is more than min_delta, compared in fp32") {
  EarlyStoppingSettings settings = patient(1);
  settings.min_delta = 0.5;
  CHECK(stops_at(settings, {3, 2.5}) == 1);
  CHECK(stops_at(settings, {3, 2.25, 1}) == -1);
  settings.min_delta = 0;
  CHECK(stops_at(settings, {1, 1 - 1e-9}) == 1);  // the same fp32
}

TEST_CASE("a value that is not finite stops, unless it is not looked at") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EarlyStoppingSettings settings = patient(3);
  CHECK(stops_at(settings, {1, nan}) == 1);
  settings.check_finite = false;
  CHECK(stops_at(settings, {1, nan, nan}) == -1);
  CHECK(stops_at(settings, {1, nan, nan, nan}) == 3);
}

TEST_CASE("thresholds stop at once") {
  EarlyStoppingSettings settings = patient(10);
  settings.stopping_threshold = 0.5;
  CHECK(stops_at(settings, {1, 0.5, 0.25}) == 2);
  settings.divergence_threshold = 4;
  CHECK(stops_at(settings, {1, 4, 5}) == 2);
}

}  // namespace early_stopping_test
