// How long steps took that a simulation left out.
#include "rehearsal/measure/step_lengths.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/measure/marks_of_steps.hpp"

namespace lockstep::cli::step_lengths_test {
namespace {

using test::marks_of_steps;
using Lengths = std::vector<std::pair<Time, int64_t>>;

TEST_CASE("a step that was left out may be longer than the one that it repeats") {
  // Four steps, which end at 10, 20, 32 and 40. Then the second once more, which ends at 50 and
  // follows the fourth, and again after 9.
  std::vector<StepMark> steps = marks_of_steps({10, 20, 32, 40});
  const RepeatedRows twice{40, 10, 20, 2, Time(9), Time(30), 0, 0};
  count_lengths(std::vector<RepeatedRows>{twice}, steps);
  CHECK(steps[0].lengths == Lengths{{Time(10), 1}});
  CHECK(steps[1].lengths == Lengths{{Time(9), 1}, {Time(10), 2}});
  CHECK(steps[2].lengths == Lengths{{Time(12), 1}});
  CHECK(steps[3].lengths == Lengths{{Time(8), 1}});
  CHECK(steps[1].times == 3);
}

TEST_CASE("what is put back comes again with what follows it") {
  // As above; then both once more three times, 19 apart: at 69, 78, 88, 97, 107, 116.
  std::vector<StepMark> steps = marks_of_steps({10, 20, 32, 40});
  const RepeatedRows twice{40, 10, 20, 2, Time(9), Time(30), 0, 0};
  const RepeatedRows again{40, 40, 40, 3, Time(19), Time(19), 0, 1};
  count_lengths(std::vector<RepeatedRows>{twice, again}, steps);
  CHECK(steps[1].lengths == Lengths{{Time(9), 4}, {Time(10), 5}});
  CHECK(steps[1].times == 9);
  CHECK(steps[3].times == 1);
}

TEST_CASE("a validation that is left out makes the step around it longer") {
  // No step ends in rows 12-14, which come five times more within the second step: it ends at 39.
  std::vector<StepMark> steps = marks_of_steps({10, 39, 49});
  const RepeatedRows validation{14, 12, 14, 5, Time(4), Time(4), 0, 0};
  count_lengths(std::vector<RepeatedRows>{validation}, steps);
  CHECK(steps[1].lengths == Lengths{{Time(29), 1}});
  CHECK(steps[2].lengths == Lengths{{Time(10), 1}});
}

TEST_CASE("of steps that took as long, each counts in the order in which it was taken") {
  // Steps 0 to 3 end at 10, 20, 30 and 42. Steps 1 and 2 come twice more at 52, 62, 72, 82; all of
  // that, from step 1 on, three times more: 0 1 2 3 (1 2 1 2) ((1 2 3 (1 2 1 2)) x 3).
  const std::vector<StepMark> steps = marks_of_steps({10, 20, 30, 42});
  const RepeatedRows twice{40, 10, 30, 2, Time(20), Time(32), 0, 0};
  const RepeatedRows again{40, 10, 40, 3, Time(72), Time(72), 0, 1};
  const std::vector<RepeatedRows> repeated{twice, again};
  std::vector<size_t> order = {1, 2, 1, 2, 1, 2};
  for (int turn = 0; turn < 3; ++turn) {
    order.insert(order.end(), {1, 2, 1, 2, 1, 2});
  }
  for (size_t number = 0; number < order.size(); ++number) {
    CAPTURE(number);
    CHECK(nth_step_of_length(repeated, steps, {1, 2, 3}, Time(10), static_cast<int64_t>(number)) ==
          order[number]);
  }
  for (int64_t number = 0; number < 4; ++number) {
    CHECK(nth_step_of_length(repeated, steps, {1, 2, 3}, Time(12), number) == 3);
    CHECK(nth_step_of_length(repeated, steps, {2}, Time(10), number) == 2);
  }
}

}  // namespace
}  // namespace lockstep::cli::step_lengths_test
