#include "sim/fault_horizon.hpp"

#include <catch2/catch.hpp>
#include <limits>

using namespace lockstep;
using namespace lockstep::sim;

namespace fault_horizon_test {

namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

Time us(int64_t count) { return Time(count * 1'000'000); }

Instant at_time(Time time) { return {Instant::Kind::time, time, 0}; }
Instant at_step(int64_t step) { return {Instant::Kind::step, {}, step}; }
Instant at_epoch(int64_t epoch) { return {Instant::Kind::epoch, {}, epoch}; }

PeriodStart steps_from(int64_t step, int64_t steps_most) {
  PeriodStart start;
  start.step = step;
  start.steps_most = steps_most;
  return start;
}

}  // namespace

TEST_CASE("a fault at a time is known from the start, and so is its end") {
  const FaultHorizon horizon({{0, at_time(us(10)), us(5)}, {1, at_time(us(40)), Time::max()}});
  CHECK(horizon.next_change(us(0)) == us(10));
  CHECK(horizon.next_change(us(10)) == us(15));
  CHECK(horizon.next_change(us(15)) == us(40));
  CHECK(horizon.next_change(us(40)) == Time::max());
  CHECK(horizon.changes_by(us(9)) == 0);
  CHECK(horizon.changes_by(us(10)) == 1);
  CHECK(horizon.changes_by(us(15)) == 2);
  CHECK(horizon.changes_by(us(40)) == 3);
  CHECK(horizon.periods_before(steps_from(0, 1)) == unlimited);
}

TEST_CASE("a fault at a step has to begin until its own rank comes there") {
  const FaultHorizon timed({{0, at_time(us(10)), us(5)}});
  CHECK_FALSE(timed.are_to_begin());  // it is known when
  FaultHorizon horizon({{0, at_time(us(10)), us(5)}, {1, at_step(2), us(5)}});
  CHECK(horizon.are_to_begin());
  Position position;
  position.step = 2;
  horizon.reached(RankId{0}, position, us(30));
  CHECK(horizon.are_to_begin());
  horizon.reached(RankId{1}, position, us(31));
  CHECK_FALSE(horizon.are_to_begin());
}

TEST_CASE("a fault at a step is periods away until its own rank comes there") {
  FaultHorizon horizon({{1, at_step(100), us(5)}});
  CHECK(horizon.next_change(us(0)) == Time::max());
  CHECK(horizon.periods_before(steps_from(40, 1)) == 60);
  CHECK(horizon.periods_before(steps_from(40, 7)) == 8);  // steps 40 to 95; the ninth has step 100
  CHECK(horizon.periods_before(steps_from(100, 1)) == 0);
  CHECK(horizon.periods_before(steps_from(101, 1)) == 0);         // another rank is ahead
  CHECK(horizon.periods_before(steps_from(40, 0)) == unlimited);  // batches of a validation
  horizon.reached(RankId{0}, {"", 100, 0}, us(70));
  CHECK(horizon.periods_before(steps_from(100, 1)) == 0);
  horizon.reached(RankId{1}, {"", 100, 0}, us(80));
  CHECK(horizon.periods_before(steps_from(100, 1)) == unlimited);
  CHECK(horizon.next_change(us(75)) == us(80));
  CHECK(horizon.next_change(us(80)) == us(85));
  CHECK(horizon.changes_by(us(85)) == 2);
}

TEST_CASE("a fault at an epoch keeps apart epochs, not the steps before it") {
  FaultHorizon horizon({{TimedFault::any_rank, at_epoch(9), Time::max()}});
  PeriodStart epochs;
  epochs.epoch = 2;
  epochs.epochs = 3;
  CHECK(horizon.periods_before(epochs) == 2);  // epochs 2 to 4 and 5 to 7; 8 to 10 has the ninth
  CHECK(horizon.periods_before(steps_from(0, 1)) == unlimited);
  horizon.reached(RankId{5}, {"", 1000, 9}, us(3));
  CHECK(horizon.periods_before(epochs) == unlimited);
  CHECK(horizon.changes_by(us(2)) == 0);
  CHECK(horizon.changes_by(us(3)) == 1);
}

}  // namespace fault_horizon_test
