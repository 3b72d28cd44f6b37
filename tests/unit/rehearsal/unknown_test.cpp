// One `unknown` that ranks take apart is one defect, whatever it does to the calls that follow.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace unknown_test {

namespace {

std::vector<std::string> codes(const std::string& statements) {
  std::vector<std::string> found;
  const std::vector<Job> jobs = rehearsed(bare_text(3, statements));
  for (const Finding& finding : jobs.front().result.findings) {
    found.push_back(finding.code);
  }
  return found;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("one unknown condition gives one finding") {
  const std::string data = "    - let: {x: \"full(4, 1.0)\"}\n";
  CHECK(codes(data + R"yaml(    - if: unknown
      then: [{all_reduce: x}]
      else: [barrier]
    - broadcast: x
)yaml") == Codes{"LS109"});
  CHECK(codes(data + R"yaml(    - repeat: 3
      do:
        - if: unknown
          then: [{all_reduce: x}, {broadcast: x}]
        - all_gather: {tensor: x, as: y}
    - barrier
)yaml") == Codes{"LS109"});
  CHECK(codes(data + R"yaml(    - let: {bad: unknown}
    - {if: bad, then: [{all_reduce: x}]}
    - barrier
    - {if: bad, then: [{broadcast: x}]}
)yaml") == Codes{"LS109"});
  CHECK(codes(data + R"yaml(    - let: {bad: unknown}
    - {if: bad, then: [return]}
    - barrier
)yaml") == Codes{"LS109"});
  CHECK(codes(data + R"yaml(    - if: unknown
      then:
        - batch_isend_irecv:
            - send: {elements: 4, dst: (rank + 1) % world_size}
            - recv: {elements: 4, src: (rank + world_size - 1) % world_size}
)yaml")
            .size() == 1);
  CHECK(codes("    - all_reduce: {elements: 4 + int(unknown)}\n").size() == 1);
}

TEST_CASE("two unknown conditions give two findings") {
  CHECK(codes(R"yaml(    - if: unknown
      then: [{all_reduce: {elements: 4}}]
    - host: 1 ms
    - if: unknown
      then: [{broadcast: {elements: 4}}]
)yaml") == Codes{"LS109", "LS109"});
}

TEST_CASE("what is wrong where all ranks take an unknown alike is a defect of its own") {
  CHECK(codes(R"yaml(    - new_group: {ranks: [0, 1], as: pair}
    - if: unknown
      then: [{all_reduce: {elements: 4, group: pair}}]
)yaml") == Codes{"LS105", "LS109"});
}

TEST_CASE("an unknown in an assertion or a decision is tried both ways") {
  CHECK(codes("    - assert: unknown\n") == Codes{""});
  CHECK(codes("    - assert: rank < 3 or unknown\n").empty());
  CHECK(codes("    - {if: rank == 0 and unknown, then: [{host: 1 ms}]}\n    - barrier\n").empty());
}

TEST_CASE("a part of a condition that is known stays as it is on every rank") {
  // Only rank 0 can come here, so nobody else can.
  CHECK(codes(R"yaml(    - if: rank == 0 and unknown
      then: [{assert: rank == 0}]
)yaml")
            .empty());
}

}  // namespace unknown_test
