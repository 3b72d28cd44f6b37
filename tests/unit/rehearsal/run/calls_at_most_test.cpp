#include <catch2/catch.hpp>

#include "rehearsal/run/one_run.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace calls_at_most_test {

// Each of two ranks calls 500 barriers.
TEST_CASE("a run whose ranks make more calls than allowed is undecided") {
  const Scenario scenario =
      test::scenario_of(test::bare_text(2, "    - repeat: 500\n      do: [barrier]\n"));
  const auto undecided_with = [&](int64_t calls) {
    const Deadline limits = Deadline().with_calls_at_most(calls);
    RunRequest request;
    request.deadline = &limits;
    return run_once(scenario, request).undecided;
  };
  CHECK(undecided_with(400) == "the limit of calls was reached");
  CHECK(undecided_with(10'000).empty());
}

}  // namespace calls_at_most_test
