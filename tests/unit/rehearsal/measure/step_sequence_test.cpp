// The steps of a rank with those that a simulation left out: which, how long, and when they ended.
#include "rehearsal/measure/step_sequence.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/measure/marks_of_steps.hpp"

namespace lockstep::cli::step_sequence_test {
namespace {

using test::marks_of_steps;
using Lengths = std::map<Time, int64_t>;

/// Rows [begin, end) repeated behind row `row`, each `period` after the one before, the first
/// `first` after what it repeats, with the first `inner` entries of the list in each.
RepeatedRows again(int64_t row, int64_t begin, int64_t end, int64_t periods, int64_t period,
                   int64_t first, int64_t inner = 0) {
  return {row, begin, end, periods, Time(period), Time(first), 0, inner};
}

std::vector<size_t> marks_of(const StepSequence& sequence) {
  std::vector<size_t> marks;
  for (int64_t step = 0; step < sequence.size(); ++step) {
    marks.push_back(sequence.at(step).mark);
  }
  return marks;
}

TEST_CASE("a step that was left out may be longer than the one that it repeats") {
  // Four steps, which end at 10, 20, 32 and 40. Then the second once more, which ends at 50 and
  // follows the fourth, and again after 9.
  const std::vector<StepMark> marks = marks_of_steps({10, 20, 32, 40});
  const std::vector<RepeatedRows> repeated = {again(40, 10, 20, 2, 9, 30)};
  const StepSequence sequence(repeated, marks);
  CHECK(sequence.lengths({0}) == Lengths{{Time(10), 1}});
  CHECK(sequence.lengths({1}) == Lengths{{Time(9), 1}, {Time(10), 2}});
  CHECK(sequence.lengths({2}) == Lengths{{Time(12), 1}});
  CHECK(sequence.lengths({3}) == Lengths{{Time(8), 1}});
  CHECK(sequence.lengths({0, 1}) == Lengths{{Time(9), 1}, {Time(10), 3}});
  CHECK(sequence.times() == std::vector<int64_t>{1, 3, 1, 1});
  CHECK(sequence.at(5).length == Time(9));
  CHECK(sequence.at(5).finish == Time(59));
}

TEST_CASE("what is put back comes again with what follows it") {
  // As above; then both once more three times, 19 apart: at 69, 78, 88, 97, 107, 116.
  const std::vector<StepMark> marks = marks_of_steps({10, 20, 32, 40});
  const std::vector<RepeatedRows> repeated = {again(40, 10, 20, 2, 9, 30),
                                              again(40, 40, 40, 3, 19, 19, 1)};
  const StepSequence sequence(repeated, marks);
  CHECK(sequence.lengths({1}) == Lengths{{Time(9), 4}, {Time(10), 5}});
  CHECK(sequence.lengths({3}) == Lengths{{Time(8), 1}});
  const std::vector<int64_t> ends = {10, 20, 32, 40, 50, 59, 69, 78, 88, 97, 107, 116};
  REQUIRE(sequence.size() == std::ssize(ends));
  for (size_t step = 0; step < ends.size(); ++step) {
    CAPTURE(step);
    CHECK(sequence.at(static_cast<int64_t>(step)).finish == Time(ends[step]));
  }
}

TEST_CASE("a validation that is left out makes the step around it longer") {
  // No step ends in rows 12-14, which come five times more within the second step: it ends at 39.
  const std::vector<StepMark> marks = marks_of_steps({10, 39, 49});
  const std::vector<RepeatedRows> repeated = {again(14, 12, 14, 5, 4, 4)};
  const StepSequence sequence(repeated, marks);
  CHECK(sequence.at(1).length == Time(29));
  CHECK(sequence.at(2).length == Time(10));
  CHECK(sequence.size() == 3);
}

TEST_CASE("a step that was left out ends as much later as its period was repeated") {
  // Rows 0-9 twice more, then all of that, with the step behind it, three times more.
  const std::vector<StepMark> marks = marks_of_steps({10, 45});
  const std::vector<RepeatedRows> repeated = {again(10, 0, 10, 2, 10, 10),
                                              again(20, 0, 20, 3, 45, 45, 1)};
  const StepSequence sequence(repeated, marks);
  const std::vector<int64_t> ends = {10,  20,  30,  45,  55,  65,  75,  90,
                                     100, 110, 120, 135, 145, 155, 165, 180};
  REQUIRE(sequence.size() == std::ssize(ends));
  for (size_t step = 0; step < ends.size(); ++step) {
    CAPTURE(step);
    const StepSequence::Step found = sequence.at(static_cast<int64_t>(step));
    CHECK(found.finish == Time(ends[step]));
    CHECK(found.length == Time(ends[step] - (step == 0 ? 0 : ends[step - 1])));
  }
}

TEST_CASE("entries that come again are found with their own times") {
  // Rows 0-9 twice more, then what was put back there once more behind it: five in all.
  const std::vector<StepMark> marks = marks_of_steps({10, 60});
  const std::vector<RepeatedRows> repeated = {again(10, 0, 10, 2, 10, 10),
                                              again(10, 10, 10, 1, 20, 20, 1)};
  const StepSequence sequence(repeated, marks);
  REQUIRE(sequence.size() == 6);
  for (int64_t step = 0; step < 5; ++step) {
    CAPTURE(step);
    CHECK(sequence.at(step).finish == Time(10 * (step + 1)));
  }
  CHECK(sequence.at(5).finish == Time(60));
}

TEST_CASE("where nothing was left out, steps are where they were") {
  const std::vector<StepMark> marks = marks_of_steps({10, 45});
  const StepSequence sequence({}, marks);
  CHECK(sequence.size() == 2);
  CHECK(sequence.at(1).finish == Time(45));
  CHECK(sequence.at(1).length == Time(35));
  CHECK(StepSequence({}, {}).size() == 0);
}

TEST_CASE("steps that were left out are where they would have been") {
  const std::vector<StepMark> marks = marks_of_steps({1, 2, 3, 4});
  // 0 1 2 [1 2] [1 2] [1 2] 3
  const std::vector<RepeatedRows> thrice = {again(30, 10, 30, 3, 2, 2)};
  CHECK(marks_of(StepSequence(thrice, marks)) == std::vector<size_t>{0, 1, 2, 1, 2, 1, 2, 1, 2, 3});
  // 0 1 [1 1] 2 [1 [1 1] 2] 3
  const std::vector<RepeatedRows> nested = {again(20, 10, 20, 2, 1, 1),
                                            again(30, 10, 30, 1, 4, 4, 1)};
  CHECK(marks_of(StepSequence(nested, marks)) == std::vector<size_t>{0, 1, 1, 1, 2, 1, 1, 1, 2, 3});
  // 0 1 [1 1] 2 [0 1 1 1] 3: before row 30 what lies long ago
  const std::vector<RepeatedRows> apart = {again(20, 10, 20, 2, 1, 1),
                                           again(30, 0, 20, 1, 5, 5, 1)};
  CHECK(marks_of(StepSequence(apart, marks)) == std::vector<size_t>{0, 1, 1, 1, 2, 0, 1, 1, 1, 3});
}

TEST_CASE("of steps that took as long, each counts in the order in which it was taken") {
  // Steps 0 to 3 end at 10, 20, 30 and 42. Steps 1 and 2 come twice more at 52, 62, 72, 82; all of
  // that, from step 1 on, three times more: 0 (1 2 3 1 2 1 2) four times.
  const std::vector<StepMark> marks = marks_of_steps({10, 20, 30, 42});
  const std::vector<RepeatedRows> repeated = {again(40, 10, 30, 2, 20, 32),
                                              again(40, 10, 40, 3, 72, 72, 1)};
  const StepSequence sequence(repeated, marks);
  const std::vector<size_t> order = marks_of(sequence);
  REQUIRE(order == std::vector<size_t>{0, 1, 2, 3, 1, 2, 1, 2, 1, 2, 3, 1, 2, 1, 2,
                                       1, 2, 3, 1, 2, 1, 2, 1, 2, 3, 1, 2, 1, 2});
  std::vector<int64_t> of_ten;  // numbers of the steps of marks 1 and 2
  std::vector<int64_t> of_mark_2;
  std::vector<int64_t> of_mark_3;
  for (size_t step = 0; step < order.size(); ++step) {
    (order[step] == 3 ? of_mark_3 : of_ten).push_back(static_cast<int64_t>(step));
    if (order[step] == 2) {
      of_mark_2.push_back(static_cast<int64_t>(step));
    }
  }
  of_ten.erase(of_ten.begin());  // the first step of all
  for (size_t place = 0; place < of_ten.size(); ++place) {
    CHECK(sequence.find({1, 2, 3}, Time(10), static_cast<int64_t>(place)) == of_ten[place]);
  }
  for (size_t place = 0; place < of_mark_2.size(); ++place) {
    CHECK(sequence.find({2}, Time(10), static_cast<int64_t>(place)) == of_mark_2[place]);
  }
  for (size_t place = 0; place < of_mark_3.size(); ++place) {
    CHECK(sequence.find({1, 2, 3}, Time(12), static_cast<int64_t>(place)) == of_mark_3[place]);
  }
}

}  // namespace
}  // namespace lockstep::cli::step_sequence_test
