// Rates and betas as DeepSpeed 0.16.4 printed them for an optimizer with lr=0.5: repr of each,
// after the scheduler was made and after each of its steps.
#include "model/trainer/scheduler/iteration_schedule.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace iteration_schedule_test {

namespace {

using Rates = std::vector<double>;

SchedulerSettings settings_of(SchedulerKind kind, const IterationSettings& of) {
  SchedulerSettings settings;
  settings.kind = kind;
  settings.of_iterations = of;
  return settings;
}

Rates rates_of(SchedulerKind kind, const IterationSettings& of, int64_t steps) {
  const SchedulerSettings settings = settings_of(kind, of);
  IterationSchedule schedule(settings, 0.5);
  Rates all = {schedule.initial()};
  for (int64_t i = 0; i < steps; ++i) {
    all.push_back(schedule.step());
  }
  return all;
}

Rates first_betas_of(const IterationSettings& of, int64_t steps) {
  const SchedulerSettings settings = settings_of(SchedulerKind::one_cycle, of);
  IterationSchedule schedule(settings, 0.5);
  Rates all = {schedule.betas()->first};
  for (int64_t i = 0; i < steps; ++i) {
    schedule.step();
    all.push_back(schedule.betas()->first);
    CHECK(schedule.betas()->second == 0.99);
  }
  return all;
}

}  // namespace

TEST_CASE("DeepSpeed's WarmupLR begins twice with its lowest rate") {
  CHECK(rates_of(SchedulerKind::warmup, {.low = 0.1, .high = 0.9, .warmup = 4}, 5) ==
        Rates{0.1, 0.1, 0.5, 0.7339850002884626, 0.9, 0.9});
  CHECK(rates_of(SchedulerKind::warmup, {.high = 0.9, .warmup = 4, .is_linear = true}, 5) ==
        Rates{0.0, 0.0, 0.225, 0.45, 0.675, 0.9});
  CHECK(rates_of(SchedulerKind::warmup, {.warmup = 0}, 3) == Rates{0.0, 0.0, 0.001, 0.001});
}

TEST_CASE(
    "DeepSpeed's WarmupDecayLR falls to its lowest rate, and from above a short total at once") {
  CHECK(rates_of(SchedulerKind::warmup_decay, {.low = 0.1, .high = 0.9, .warmup = 3, .total = 7},
                 9) == Rates{0.1, 0.1, 0.6047438028571659, 0.9, 0.9, 0.7000000000000001, 0.5,
                             0.30000000000000004, 0.1, 0.1});
  CHECK(rates_of(SchedulerKind::warmup_decay,
                 {.high = 0.9, .warmup = 3, .is_linear = true, .total = 2},
                 4) == Rates{0.0, 0.0, 0.3, 0.6, 0.0});
}

TEST_CASE("DeepSpeed's WarmupCosineLR begins with 0 and rises again behind its total") {
  CHECK(rates_of(SchedulerKind::warmup_cosine,
                 {.low = 0.2, .warmup = 3, .total = 7, .last_ratio = 0.1},
                 9) == Rates{0.0, 0.1, 0.352371901428583, 0.5, 0.4340990257669732, 0.275,
                             0.11590097423302682, 0.05, 0.11590097423302678, 0.27499999999999997});
  CHECK(rates_of(SchedulerKind::warmup_cosine, {.warmup = 2, .is_linear = true, .total = 6}, 5) ==
        Rates{0.0, 0.0, 0.25, 0.4267840176271072, 0.250025, 0.0732659823728928});
}

TEST_CASE("DeepSpeed's OneCycle changes Adam's betas with the rate") {
  const IterationSettings decaying{.low = 0.1,
                                   .high = 0.5,
                                   .first_size = 3,
                                   .second_size = 2,
                                   .decay_size = 2,
                                   .decay_rate = 0.5,
                                   .momentum_decay_rate = 0.01};
  CHECK(rates_of(SchedulerKind::one_cycle, decaying, 9) ==
        Rates{0.1, 0.2333333333333333, 0.3666666666666666, 0.4999999999999999, 0.29999999999999993,
              0.1, 0.08, 0.06666666666666667, 0.05714285714285715, 0.05});
  CHECK(first_betas_of(decaying, 9) == Rates{0.8, 0.8666666666666667, 0.8333333333333334, 0.8,
                                             0.8500000000000001, 0.9, 0.9045, 0.909, 0.9135,
                                             0.918});
  const IterationSettings plain{.low = 0.1, .high = 0.5, .first_size = 2, .second_size = 2};
  CHECK(rates_of(SchedulerKind::one_cycle, plain, 6) ==
        Rates{0.1, 0.30000000000000004, 0.5, 0.30000000000000004, 0.1, 0.1, 0.1});
  CHECK(first_betas_of(plain, 6) ==
        Rates{0.8, 0.8500000000000001, 0.8, 0.8500000000000001, 0.9, 0.9, 0.9});
}

TEST_CASE("DeepSpeed's LRRangeTest raises the rate, in steps or in stairs") {
  IterationSettings of{.low = 0.01, .step_size = 2, .step_rate = 3};
  CHECK(rates_of(SchedulerKind::range_test, of, 5) == Rates{0.01, 0.025, 0.04, 0.055, 0.07, 0.085});
  of.in_stairs = true;
  CHECK(rates_of(SchedulerKind::range_test, of, 5) == Rates{0.01, 0.01, 0.04, 0.04, 0.07, 0.07});
}

// What Python's division raises: real_total_steps of WarmupCosineLR, and step_ratio of OneCycle at
// the end of a cycle, whose first half has no steps.
TEST_CASE("DeepSpeed's schedulers divide by zero where there is nothing to divide by") {
  const SchedulerSettings cosine =
      settings_of(SchedulerKind::warmup_cosine, {.warmup = 2, .total = 2});
  IterationSchedule of_cosine(cosine, 0.5);
  std::vector<bool> raised = {of_cosine.divides_by_zero()};
  for (int i = 0; i < 3; ++i) {
    of_cosine.step();
    raised.push_back(of_cosine.divides_by_zero());
  }
  CHECK(raised == std::vector<bool>{false, false, false, true});
  const SchedulerSettings cycle =
      settings_of(SchedulerKind::one_cycle, {.low = 0.1, .first_size = 0, .second_size = 2});
  IterationSchedule of_cycle(cycle, 0.5);
  of_cycle.step();
  CHECK_FALSE(of_cycle.divides_by_zero());
  of_cycle.step();
  CHECK(of_cycle.divides_by_zero());
}

// Printed by 0.16.4 for cycle_second_step_size=0: the rate rises, and falls at once.
TEST_CASE("DeepSpeed's OneCycle may have no second half") {
  CHECK(rates_of(SchedulerKind::one_cycle,
                 {.low = 0.1, .high = 0.5, .first_size = 2, .second_size = 0},
                 4) == Rates{0.1, 0.30000000000000004, 0.1, 0.1, 0.1});
}

}  // namespace iteration_schedule_test
