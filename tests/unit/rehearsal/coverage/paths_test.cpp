#include "rehearsal/coverage/paths.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <set>

#include "rehearsal/coverage/leave_out.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::paths_test {
namespace {

using PathsOfCases = std::vector<std::vector<uint64_t>>;

std::set<uint64_t> all_of(const PathsOfCases& cases) {
  std::set<uint64_t> all;
  for (const auto& paths : cases) {
    all.insert(paths.begin(), paths.end());
  }
  return all;
}

std::vector<uint64_t> paths_of_text(const std::string& statements, int ranks = 2) {
  const std::vector<Job> jobs = test::rehearsed(test::bare_text(ranks, statements));
  REQUIRE(jobs.size() == 1);
  REQUIRE(jobs.front().result.ran());
  return paths_of(jobs.front().result);
}

const std::string one_sum = R"yaml(    - let: {x: "full(4, 1.0)"}
    - all_reduce: {tensor: x, as: y}
)yaml";

TEST_CASE("the case that adds most comes first, and what adds nothing is left out") {
  // {1, 2, 3} has all that {1, 2} and {3} have; 4 is in the last alone.
  CHECK(covering_cases({{1, 2}, {1, 2, 3}, {3}, {3, 4}}) == std::vector<size_t>{1, 3});
}

TEST_CASE("of equal cases the earlier one stays, and one without paths always does") {
  CHECK(covering_cases({{7}, {7}, {}, {7}}) == std::vector<size_t>{0, 2});
  CHECK(covering_cases({}).empty());
}

TEST_CASE("the cases that stay have every path of all") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    PathsOfCases cases(random() % 12);
    for (auto& paths : cases) {
      std::set<uint64_t> drawn;
      for (auto left = random() % 6; left > 0; --left) {
        drawn.insert(random() % 9);
      }
      paths.assign(drawn.begin(), drawn.end());
    }
    PathsOfCases kept;
    for (const size_t index : covering_cases(cases)) {
      kept.push_back(cases[index]);
    }
    CAPTURE(round);
    CHECK(all_of(kept) == all_of(cases));
  }
}

TEST_CASE("sizes, values and ranks make no path, calls and types do") {
  const std::vector<uint64_t> sum = paths_of_text(one_sum);
  CHECK(sum == paths_of_text(R"yaml(    - let: {x: "full(64, 3.0)"}
    - all_reduce: {tensor: x, as: y}
)yaml",
                             4));
  const std::vector<uint64_t> broadcast = paths_of_text(R"yaml(    - let: {x: "full(4, 1.0)"}
    - broadcast: {tensor: x, src: 0, as: y}
)yaml");
  CHECK_FALSE(std::includes(sum.begin(), sum.end(), broadcast.begin(), broadcast.end()));
  CHECK_FALSE(std::includes(broadcast.begin(), broadcast.end(), sum.begin(), sum.end()));
}

TEST_CASE("a hang is a path of its own") {
  const std::vector<uint64_t> fine = paths_of_text(R"yaml(    - all_gather: {elements: 16, as: g}
)yaml");
  const std::vector<uint64_t> hangs = paths_of_text(test::guarded_statements);
  CHECK_FALSE(std::includes(fine.begin(), fine.end(), hangs.begin(), hangs.end()));
}

TEST_CASE("a case stays that the expectations of a remaining one name") {
  const std::string text = R"yaml(version: 1
cluster: {ranks: 2, network: {bandwidth: 1 GB/s, latency: 1 us}}
cases:
  small:
    program: {main: [{all_reduce: {elements: 16}}]}
  also_small:
    program: {main: [{all_reduce: {elements: 32}}]}
  large:
    program: {main: [{all_reduce: {elements: 1600000}}, barrier]}
    expect: ["total_time > small.total_time"]
)yaml";
  Collected collected = collect(test::source_of_text(text));
  REQUIRE(collected.diagnostics.empty());
  REQUIRE(collected.jobs.size() == 3);
  leave_out_covered(collected.jobs, {}, 1);
  CHECK_FALSE(collected.jobs[0].left_out);
  CHECK(collected.jobs[1].left_out);
  CHECK_FALSE(collected.jobs[2].left_out);
}

}  // namespace
}  // namespace lockstep::cli::paths_test
