#include "rehearsal/measure/step_ends.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;
using namespace lockstep::cli;

namespace step_ends_test {

namespace {

Time us(int64_t count) { return Time(count * 1'000'000); }

StepMark step(int64_t begin, int64_t end, int64_t finish) { return {{begin, end}, us(finish)}; }

}  // namespace

TEST_CASE("a step that was left out ends as much later as its period was repeated") {
  // Rows 0-9 twice more, then all of that, with the step behind it, three times more.
  const std::vector<StepMark> steps = {step(0, 10, 10), step(10, 20, 45)};
  const std::vector<RepeatedRows> repeated = {{10, 0, 10, 2, us(10), us(10), 0, 0},
                                              {20, 0, 20, 3, us(45), us(45), 0, 1}};
  const std::vector<int64_t> expected = {10,  20,  30,  45,  55,  65,  75,  90,
                                         100, 110, 120, 135, 145, 155, 165, 180};
  for (size_t number = 0; number < expected.size(); ++number) {
    CAPTURE(number);
    CHECK(end_of_step(repeated, steps, static_cast<int64_t>(number)) == us(expected[number]));
  }
  CHECK_FALSE(end_of_step(repeated, steps, 16));
  CHECK_FALSE(end_of_step(repeated, steps, -1));
}

TEST_CASE("entries that come again are found with their own times") {
  // Rows 0-9 twice more, then what was put back there once more behind it: five in all.
  const std::vector<StepMark> steps = {step(0, 10, 10), step(10, 20, 60)};
  const std::vector<RepeatedRows> repeated = {{10, 0, 10, 2, us(10), us(10), 0, 0},
                                              {10, 10, 10, 1, us(20), us(20), 0, 1}};
  for (int64_t number = 0; number < 5; ++number) {
    CAPTURE(number);
    CHECK(end_of_step(repeated, steps, number) == us(10 * (number + 1)));
  }
  CHECK(end_of_step(repeated, steps, 5) == us(60));
  CHECK_FALSE(end_of_step(repeated, steps, 6));
}

TEST_CASE("where nothing was left out, steps end where they did") {
  const std::vector<StepMark> steps = {step(0, 10, 10), step(10, 20, 45)};
  CHECK(end_of_step({}, steps, 1) == us(45));
  CHECK_FALSE(end_of_step({}, steps, 2));
  CHECK_FALSE(end_of_step({}, {}, 0));
}

}  // namespace step_ends_test
