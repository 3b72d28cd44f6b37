// Whatever a program does, the simulator and the real world do the same. Programs are drawn before
// any rank starts.
#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/property/agreement.hpp"
#include "tests/property/generators.hpp"
#include "tests/property/held.hpp"
#include "tests/property/interpreter.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace two_worlds_test {

namespace {

constexpr std::chrono::milliseconds deadline{250};

void count(Distribution& distribution, int32_t ranks, std::string_view flaw,
           const Verdict& verdict) {
  distribution.count_case();
  distribution.count(fmt::format("ranks {}", ranks));
  distribution.count(fmt::format("defect {}", flaw));
  distribution.count(verdict.hung ? "hung" : "ended");
  if (ranks > 1) {
    distribution.count("several ranks");
  }
  if (!verdict.findings.empty()) {
    distribution.count(fmt::format("defect {}: found", flaw));
  }
}

void expect_none(const Verdict& verdict) {
  for (const std::string& failure : verdict.failures) {
    RC_LOG() << failure << "\n";
  }
  RC_ASSERT(verdict.failures.empty());
}

void expect_findings(const Verdict& verdict, bool defect) {
  for (const std::string& finding : verdict.findings) {
    RC_LOG() << "finding: " << finding << "\n";
  }
  RC_ASSERT(verdict.findings.empty() == !defect);
}

void conclude(bool held, const Distribution& distribution, const std::string& test) {
  distribution.print(test);
  REQUIRE(held);
  CHECK(distribution.discards() < 0.2);
  CHECK(distribution.share("several ranks") >= 0.8);
  CHECK(distribution.share("defect none") <= 0.7);
}

}  // namespace

TEST_CASE("a bare program does the same in both worlds") {
  Worlds worlds(deadline);
  Distribution distribution;
  const bool held = holds("a bare program does the same in both worlds", 150, [&] {
    distribution.draw();
    const BareProgram program = *bare_programs();
    RunOptions options = world_of(program.ranks);
    options.eager_limit = program.eager ? Bytes(1 << 20) : Bytes();
    const Verdict verdict = judge(worlds, options, [&program](Rank& rank, Seen& seen) {
      return interpret(rank, &program, seen);
    });
    count(distribution, program.ranks, flaw_names[static_cast<size_t>(planted(program))], verdict);
    expect_none(verdict);
    if (planted(program) == Flaw::none) {
      expect_findings(verdict, false);
    }
  });
  conclude(held, distribution, "a bare program does the same in both worlds");
}

TEST_CASE("a training does the same in both worlds") {
  Worlds worlds(deadline);
  Distribution distribution;
  const bool held = holds("a training does the same in both worlds", 150, [&] {
    distribution.draw();
    const TrainingCase training = *training_cases();
    const Network network = network_of(training);
    RunOptions options = world_of(training.ranks);
    options.devices_per_rank = training.devices;
    options.network = &network;
    const Verdict verdict = judge(worlds, options, [&](Rank& rank, Seen& seen) {
      return train_case(rank, &training, &network, seen);
    });
    count(distribution, training.ranks, training_flaw_names[static_cast<size_t>(planted(training))],
          verdict);
    expect_none(verdict);
    expect_findings(verdict, is_defect(training));
  });
  conclude(held, distribution, "a training does the same in both worlds");
}

}  // namespace two_worlds_test
