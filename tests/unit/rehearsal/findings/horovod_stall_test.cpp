// What LS101 says of the variables that horovod/common/stall_inspector.cc reads.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace horovod_stall_test {

namespace {

// Rank 1 never hands `a` over.
std::string consequence_with(const std::string& env) {
  const auto jobs = rehearsed(R"yaml(version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
process_group: {backend: horovod}
env: {)yaml" + env + R"yaml(}
program:
  main:
    - if: rank == 0
      then: [{all_reduce: {elements: 8, name: a}}]
    - all_reduce: {elements: 8, name: b}
)yaml");
  REQUIRE(jobs.size() == 1);
  REQUIRE(jobs.front().result.problems.empty());
  REQUIRE(jobs.front().result.findings.size() == 1);
  const Finding& finding = jobs.front().result.findings.front();
  CHECK(finding.code == "LS101");
  REQUIRE(finding.follows.size() == 1);
  return finding.follows.front();
}

}  // namespace

TEST_CASE("the stall check of Horovod warns after a minute and never shuts down") {
  const std::string text = consequence_with("");
  CHECK_THAT(text, Catch::Contains("warns after 60 s and names them; over Gloo it waits"));
  CHECK_THAT(text, !Catch::Contains("shuts down"));
}

TEST_CASE("its shutdown comes at the first check behind its time") {
  CHECK_THAT(consequence_with("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS: 150"),
             Catch::Contains("warns after 60 s and names them, and after 150 to 210 s it shuts "
                             "down: all ranks raise HorovodInternalError"));
  CHECK_THAT(consequence_with("HOROVOD_STALL_CHECK_TIME_SECONDS: 10, "
                              "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS: 10"),
             Catch::Contains("warns after 10 s and names them, and after 10 to 20 s it"));
}

TEST_CASE("a shutdown before the first warning is not taken") {
  const std::string text = consequence_with("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS: 30");
  CHECK_THAT(text, Catch::Contains("never shuts down"));
  CHECK_THAT(text, Catch::Contains("(30) is less than HOROVOD_STALL_CHECK_TIME_SECONDS"));
}

TEST_CASE("the stall check can be turned off") {
  const std::string text =
      consequence_with("HOROVOD_STALL_CHECK_DISABLE: 1, HOROVOD_STALL_SHUTDOWN_TIME_SECONDS: 120");
  CHECK_THAT(text, Catch::Contains("waits without a word and without limit"));
  CHECK_THAT(text, !Catch::Contains("warns"));
  CHECK_THAT(consequence_with("HOROVOD_STALL_CHECK_DISABLE: 0"), Catch::Contains("after 60 s"));
}

TEST_CASE("times of the stall check are whole numbers") {
  const auto jobs = rehearsed(R"yaml(version: 1
cluster: {ranks: 2, network: {bandwidth: 25 GB/s, latency: 2 us}}
process_group: {backend: horovod}
env: {HOROVOD_STALL_SHUTDOWN_TIME_SECONDS: two minutes}
program:
  main: [{all_reduce: {elements: 8, name: a}}]
)yaml");
  REQUIRE(jobs.size() == 1);
  REQUIRE(jobs.front().result.problems.size() == 1);
  CHECK(jobs.front().result.problems.front().kind == Problem::Kind::invalid);
  CHECK(jobs.front().result.problems.front().place.line == 4);
}

}  // namespace horovod_stall_test
