// Rates as torch 2.11 printed them for SGD(lr=0.5): repr of each, after the scheduler was made and
// after each of its steps.
#include "model/trainer/scheduler/learning_rate_schedule.hpp"

#include <catch2/catch.hpp>

#include "model/trainer/scheduler/plateau_schedule.hpp"

using namespace lockstep;

namespace learning_rate_schedule_test {

namespace {

using Rates = std::vector<double>;

Rates rates(const SchedulerSettings& settings, int64_t steps) {
  ParameterGroup group{.rate = 0.5};
  LearningRateSchedule schedule(settings, group);
  Rates all = {group.rate};
  for (int64_t i = 0; i < steps; ++i) {
    schedule.step(group);
    all.push_back(group.rate);
  }
  return all;
}

Rates rates(const SchedulerSettings& settings, const Rates& metrics) {
  PlateauSchedule schedule(settings);
  Rates all = {0.5};
  for (const double metric : metrics) {
    all.push_back(schedule.step(all.back(), metric));
  }
  return all;
}

SchedulerSettings of(SchedulerKind kind, double factor, int64_t period) {
  SchedulerSettings settings;
  settings.kind = kind;
  settings.factor = factor;
  settings.period = period;
  return settings;
}

SchedulerSettings plateau(int64_t patience) {
  SchedulerSettings settings = of(SchedulerKind::reduce_on_plateau, 0.5, 1);
  settings.patience = patience;
  return settings;
}

}  // namespace

TEST_CASE("StepLR and MultiStepLR") {
  CHECK(rates(of(SchedulerKind::step, 0.5, 2), 5) == Rates{0.5, 0.5, 0.25, 0.25, 0.125, 0.125});
  SchedulerSettings settings = of(SchedulerKind::multi_step, 0.1, 1);
  settings.milestones = {1, 3, 3};
  CHECK(rates(settings, 4) == Rates{0.5, 0.05, 0.05, 0.0005000000000000001, 0.0005000000000000001});
}

TEST_CASE("ConstantLR, LinearLR, ExponentialLR and PolynomialLR") {
  CHECK(rates(of(SchedulerKind::constant, 1.0 / 3, 2), 4) ==
        Rates{0.16666666666666666, 0.16666666666666666, 0.5, 0.5, 0.5});
  CHECK(rates(of(SchedulerKind::linear, 1.0 / 3, 4), 5) ==
        Rates{0.16666666666666666, 0.25, 0.33333333333333337, 0.41666666666666674,
              0.5000000000000001, 0.5000000000000001});
  CHECK(rates(of(SchedulerKind::exponential, 0.9, 1), 3) ==
        Rates{0.5, 0.45, 0.405, 0.36450000000000005});
  CHECK(rates(of(SchedulerKind::polynomial, 2, 4), 5) ==
        Rates{0.5, 0.28125, 0.125, 0.03125, 0.0, 0.0});
}

TEST_CASE("CosineAnnealingLR goes back up, and with warm restarts starts again") {
  SchedulerSettings cosine = of(SchedulerKind::cosine_annealing, 0, 3);
  cosine.least = 0.01;
  CHECK(rates(cosine, 8) == Rates{0.5, 0.3775, 0.13250000000000006, 0.01, 0.13249999999999998,
                                  0.3775000000000003, 0.5000000000000003, 0.37750000000000034,
                                  0.13250000000000026});
  SchedulerSettings warm = of(SchedulerKind::cosine_annealing_warm_restarts, 0, 2);
  warm.period_factor = 2;
  warm.least = 0.01;
  CHECK(rates(warm, 7) == Rates{0.5, 0.255, 0.5, 0.4282411613907041, 0.255, 0.08175883860929586,
                                0.5, 0.48135048546526527});
}

TEST_CASE("ReduceLROnPlateau waits for more than its patience, and cools down") {
  CHECK(rates(plateau(1), {3, 3, 3, 2, 2, 2, 2, 1}) ==
        Rates{0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125});
  SchedulerSettings cooling = plateau(0);
  cooling.cooldown = 2;
  CHECK(rates(cooling, Rates(7, 1)) == Rates{0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125});
}

TEST_CASE("ReduceLROnPlateau has modes, a least rate and a least change") {
  SchedulerSettings higher = plateau(0);
  higher.higher_is_better = true;
  higher.threshold = 0.5;
  higher.threshold_is_relative = false;
  higher.least = 0.2;
  CHECK(rates(higher, {1, 1.5, 2, 2, 2}) == Rates{0.5, 0.5, 0.25, 0.25, 0.2, 0.2});
  SchedulerSettings small = plateau(0);
  small.eps = 0.3;
  CHECK(rates(small, {1, 1, 1}) == Rates{0.5, 0.5, 0.5, 0.5});
}

}  // namespace learning_rate_schedule_test
