#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace judge_test {

namespace {

// Ten milliseconds, exactly.
std::string ten_ms(const std::string& expectations) {
  return bare_text(2, "    - kernel: 10 ms\n", "expect: " + expectations + "\n");
}

Judged first_of(const std::string& text, Judges judges = Judges::all) {
  return rehearsed(text, judges).front().result.expectations.front();
}

}  // namespace

TEST_CASE("a tolerance is a part of the right side, or a quantity") {
  CHECK(first_of(ten_ms("[total_time == 9 ms +- 12 %]")).met);
  CHECK_FALSE(first_of(ten_ms("[total_time == 9 ms +- 11 %]")).met);
  CHECK(first_of(ten_ms("[total_time == 12 ms +- 2 ms]")).met);
  CHECK_FALSE(first_of(ten_ms("[total_time == 12 ms +- 1 ms]")).met);
}

TEST_CASE("what was expected and what came out are reported together") {
  const Judged judged = first_of(ten_ms("[total_time < 5 ms]"));
  CHECK_FALSE(judged.met);
  CHECK(judged.actual == "total_time is 10 ms");
}

TEST_CASE("each command judges its own expectations") {
  const std::string text = ten_ms("[total_time < 5 ms, no_hang]");
  const auto run = rehearsed(text, Judges::quantities).front().result.expectations;
  CHECK(run[0].judged);
  CHECK_FALSE(run[1].judged);
  const auto verify = rehearsed(text, Judges::words).front().result.expectations;
  CHECK_FALSE(verify[0].judged);
  CHECK(verify[1].judged);
}

TEST_CASE("what a program raises is its own, whatever its words") {
  const auto raised = [](const std::string& statements, const std::string& expected) {
    return first_of(bare_text(2, statements, "expect: [" + expected + "]\n"));
  };
  CHECK(raised("    - raise: this is not modelled in our script\n", "raises").met);
  CHECK_FALSE(raised("    - raise: assertion of ours\n", "assertion").met);
  CHECK(raised("    - assert: rank == 0\n", "assertion").met);
}

TEST_CASE("a result of another case is compared with this one's") {
  const auto jobs = rehearsed(R"yaml(
version: 1
cluster: {ranks: 1, network: {bandwidth: 1 GB/s}}
cases:
  slow:
    program: {main: [{kernel: 20 ms}]}
    expect: [quick.total_time < total_time, quick.total_time * 2 == total_time]
  quick:
    program: {main: [{kernel: 10 ms}]}
)yaml");
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].result.expectations[0].met);
  CHECK(jobs[0].result.expectations[1].met);
}

TEST_CASE("words are about findings") {
  const auto judged = [](const std::string& words) {
    return rehearsed(bare_text(2, guarded_statements, "expect: " + words + "\n"))
        .front()
        .result.expectations;
  };
  for (const Judged& one : judged("[hang, finding LS101, no_finding LS102]")) {
    CHECK(one.met);
  }
  for (const Judged& one : judged("[no_hang, no_findings, finding LS102, refused]")) {
    CHECK_FALSE(one.met);
  }
}

TEST_CASE("what no run gives is not judged, and what this run lacks is not met") {
  const Judged range = first_of(ten_ms("[total_time.low > 0 s]"));
  CHECK_FALSE(range.judged);
  const Judged step = first_of(ten_ms("[step_time > 0 s]"));
  CHECK(step.judged);
  CHECK_FALSE(step.met);
  CHECK(step.actual == "step_time: there was no optimizer step");
}

}  // namespace judge_test
