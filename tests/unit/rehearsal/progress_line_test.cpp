// What the line of progress says at given times: a clock that the test sets.
#include <catch2/catch.hpp>

#include "rehearsal/progress_line.hpp"

using namespace lockstep::cli;

namespace progress_line_test {

TEST_CASE("steps are shown with the time that they still take at the rate so far") {
  ProgressLine line;
  line.case_begins("train.yaml");
  CHECK(line.text(0.5) == "0 s · train.yaml");
  line.step("step", 0, 200, 1.0);
  line.step("step", 10, 200, 1.5);
  // 10 steps in half a second: no rate is believed before a whole one.
  CHECK(line.text(1.5) == "2 s · train.yaml · step 10 of 200");
  line.step("step", 50, 200, 11.0);
  // 50 steps in 10 s: 150 take 30 s.
  CHECK(line.text(11.0) == "11 s, about 30 s left · train.yaml · step 50 of 200");
  // 50 steps in 20 s, as no further one has ended: 150 take 60 s.
  CHECK(line.text(21.0) == "21 s, about 1 min left · train.yaml · step 50 of 200");
  line.step("step", 200, 200, 41.0);
  CHECK(line.text(41.0) == "41 s · train.yaml · step 200 of 200");
}

TEST_CASE("steps whose number nobody knows have no time left") {
  ProgressLine line;
  line.step("step", 1, std::nullopt, 0.0);
  line.step("step", 50, std::nullopt, 10.0);
  CHECK(line.text(10.0) == "10 s · step 50");
}

TEST_CASE("of several cases the time left is that of all of them") {
  ProgressLine line;
  line.expect(8, "cases", 0.0);
  line.case_begins("a.yaml");
  line.step("step", 0, 100, 0.0);
  line.step("step", 50, 100, 4.0);
  CHECK(line.text(4.0) == "4 s · 0 of 8 cases done · a.yaml · step 50 of 100");
  line.case_ends(8.0);
  line.case_ends(8.0);
  line.case_begins("c.yaml");
  // 2 cases in 8 s: 6 take 24 s.
  CHECK(line.text(8.0) == "8 s, about 24 s left · 2 of 8 cases done · c.yaml");
  // Another count begins from 0, and with a clock of its own.
  line.expect(3, "layouts", 100.0);
  line.case_ends(100.5);
  CHECK(line.text(100.5) == "100 s · 1 of 3 layouts done · c.yaml");
  CHECK(line.text(102.0) == "102 s, about 4 s left · 1 of 3 layouts done · c.yaml");
}

TEST_CASE("a phase has a count of its own, and ends the steps of the one before") {
  ProgressLine line;
  line.expect(1, "cases", 0.0);
  line.case_begins("a.yaml");
  line.step("step", 100, 100, 5.0);
  line.phase("order 2 of 9 so far", Amount{1, 9}, 5.0);
  CHECK(line.text(5.0) == "5 s · a.yaml · order 2 of 9 so far");
  line.step("step", 10, 100, 6.0);
  line.phase("order 4 of 9 so far", Amount{3, 9}, 7.0);
  // 2 orders in 2 s: 6 take 6 s.
  CHECK(line.text(7.0) == "7 s, about 6 s left · a.yaml · order 4 of 9 so far");
  // More orders than were known: the rate counts from here.
  line.phase("order 5 of 20 so far", Amount{4, 20}, 8.0);
  CHECK(line.text(9.5) == "10 s · a.yaml · order 5 of 20 so far");
  line.phase("on one device", std::nullopt, 10.0);
  CHECK(line.text(12.0) == "12 s · a.yaml · on one device");
}

TEST_CASE("a long name gives way to what is done and what is left") {
  ProgressLine line;
  line.case_begins("/home/somebody/trainings/of/this/year/größer.yaml");
  line.step("step", 0, 5'000'000, 0.0);
  line.step("step", 189'664, 5'000'000, 5.0);
  CHECK(line.text(5.0) ==
        "5 s, about 3 min left · ..ngs/of/this/year/größer.yaml · step 189664 of"
        " 5000000");
  CHECK(line.text(5.0, 60) == "5 s, about 3 min left · ..rößer.yaml · step 189664 of 5000..");
  CHECK(line.text(5.0, 200).find(" /home/somebody/") != std::string::npos);
}

TEST_CASE("long times are in minutes and hours") {
  ProgressLine line;
  line.expect(1001, "rows", 0.0);
  line.case_ends(1.2);
  CHECK(line.text(1.2) == "1 s, about 20 min left · 1 of 1001 rows done");
  CHECK(line.text(9.0) == "9 s, about 2.5 h left · 1 of 1001 rows done");
}

}  // namespace progress_line_test
