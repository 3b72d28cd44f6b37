#include "rehearsal/elastic/failure_forecast.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace lockstep;
using namespace lockstep::cli;

TEST_CASE("the intervals of Young and Daly") {
  const FailureModel model{10'000, 50, 100};
  CHECK(interval_by_young(model) == Approx(1000));  // sqrt(2 * 50 * 10000)
  // C / 2M = 0.0025, its root 0.05: 1000 (1 + 0.05 / 3 + 0.0025 / 9) - 50.
  CHECK(interval_by_daly(model) == Approx(966.94444));
  CHECK(interval_by_daly({100, 200, 0}) == 100);  // a checkpoint takes twice M
}

TEST_CASE("the expected goodput is that of Daly's complete model") {
  // 0.1 / (e^0.1 - 1): nothing but lost work.
  CHECK(expected_goodput({10'000, 0, 0}, 1000) == Approx(0.9508332));
  // 0.1 / (e^0.01 (e^0.105 - 1)).
  CHECK(expected_goodput({10'000, 50, 100}, 1000) == Approx(0.8942683));
  // Where nothing fails, only the checkpoint costs: 1000 / 1050.
  CHECK(expected_goodput({1e12, 50, 100}, 1000) == Approx(1000.0 / 1050).epsilon(1e-6));
}

TEST_CASE("drawn failures agree with the formula, and are the same each time") {
  const FailureModel model{10'000, 50, 100};
  constexpr double long_s = 10'000'000;  // a thousand failures: the end does not count
  const double drawn = drawn_goodput(model, 1000, long_s, 20, 1);
  CHECK(drawn == Approx(expected_goodput(model, 1000)).epsilon(0.005));
  CHECK(drawn == drawn_goodput(model, 1000, long_s, 20, 1));
  CHECK(drawn != drawn_goodput(model, 1000, long_s, 20, 2));
}

TEST_CASE("the best drawn interval lies where the formulas have theirs") {
  const FailureModel model{10'000, 50, 100};
  const double best = drawn_optimum(model, 1'000'000, 100, 7);
  // The optimum is flat: what matters is that it costs no more than Daly's.
  CHECK(expected_goodput(model, best) > expected_goodput(model, interval_by_daly(model)) - 0.001);
  CHECK(best > 700);
  CHECK(best < 1350);
}

TEST_CASE("a job that saves nothing loses everything with a failure") {
  // Time until the end without a failure: e^(-H/M) keeps all of H; with failures what was trained
  // since the last. The mean of that is M (1 - e^(-H/M)), as for the age of a renewal process.
  const FailureModel model{40'000, 0, 0};
  const double horizon = 86'400;
  const double expected = 40'000 * (1 - std::exp(-horizon / 40'000)) / horizon;
  CHECK(drawn_goodput(model, 0, horizon, 40'000, 3) == Approx(expected).epsilon(0.02));
}
