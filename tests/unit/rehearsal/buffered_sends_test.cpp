// A circle of sends is an error where it hangs and a warning where sends return before they are
// received.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace buffered_sends_test {

namespace {

Finding only_finding(const std::string& statements, const std::string& limit) {
  const std::string group = "process_group: {backend: gloo, eager_limit: " + limit + "}\n";
  const Rehearsal ran = std::move(rehearsed(bare_text(3, statements, group)).front().result);
  REQUIRE(ran.findings.size() == 1);
  return ran.findings.front();
}

// 4 elements of fp32 are 16 B.
const std::string all_send_first =
    "    - send: {elements: 4, dst: (rank + 1) % 3}\n"
    "    - recv: {elements: 4, src: (rank + 2) % 3}\n";
const std::string barrier_between =
    "    - send: {elements: 4, dst: (rank + 1) % 3}\n"
    "    - barrier\n"
    "    - recv: {elements: 4, src: (rank + 2) % 3}\n";

}  // namespace

TEST_CASE("LS108 is a warning up to the eager limit and an error beyond it") {
  for (const std::string& statements : {all_send_first, barrier_between}) {
    INFO(statements);
    const Finding eager = only_finding(statements, "16 B");
    CHECK(eager.code == "LS108");
    CHECK(eager.level == Level::warning);
    const Finding late = only_finding(statements, "15 B");
    CHECK(late.code == "LS108");
    CHECK(late.level == Level::error);
  }
}

}  // namespace buffered_sends_test
