// Whatever a scenario does, the simulator, threads over Gloo and processes over LibTorch do the
// same. The rank programs stay up and take case after case.
#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/fleet/scenario_text.hpp"
#include "tests/fleet/three_worlds.hpp"
#include "tests/fleet/training_scenario.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/generators.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace three_worlds_test {

namespace {

constexpr std::chrono::milliseconds deadline{350};

void count(Distribution& distribution, int32_t ranks, const std::string& defect,
           const Agreement& agreement) {
  distribution.count_case();
  distribution.count(fmt::format("ranks {}", ranks));
  distribution.count("defect " + defect);
  distribution.count(agreement.hung ? "hung" : "ended");
  for (const std::string& code : agreement.findings) {
    distribution.count("finding " + (code.empty() ? "without a code" : code));
  }
  distribution.count(agreement.findings.empty() ? "no finding" : "some finding");
  distribution.count(agreement.bit_for_bit ? "values bit for bit" : "values within the bound");
  if (ranks > 1) {
    distribution.count("several ranks");
  }
}

void expect_none(const Agreement& agreement) {
  for (const std::string& failure : agreement.failures) {
    RC_LOG() << failure << "\n";
  }
  RC_ASSERT(agreement.failures.empty());
}

void conclude(bool held, const Distribution& distribution, const ThreeWorlds& worlds,
              const std::string& test) {
  distribution.print(test);
  fmt::print("  ranks were started {} times and connected {} times\n", worlds.fleet().starts(),
             worlds.fleet().connections());
  REQUIRE(held);
  CHECK(distribution.discards() < 0.2);
  CHECK(distribution.share("several ranks") >= 0.65);
  CHECK(distribution.share("defect none") <= 0.7);
}

}  // namespace

TEST_CASE("a bare program does the same in all three worlds") {
  ThreeWorlds worlds(deadline);
  Distribution distribution;
  const bool held = holds(
      "a bare program does the same in all three worlds", 170,
      [&] {
        distribution.draw();
        const BareProgram program = *bare_programs();
        Asked asked;
        asked.text = scenario_text(program);
        RC_LOG() << asked.text;
        const Agreement agreement = worlds.judge(asked);
        count(distribution, program.ranks,
              std::string(flaw_names[static_cast<size_t>(planted(program))]), agreement);
        expect_none(agreement);
      },
      "fleet_tests");
  conclude(held, distribution, worlds, "a bare program does the same in all three worlds");
}

TEST_CASE("a training does the same in all three worlds") {
  ThreeWorlds worlds(deadline);
  Distribution distribution;
  const bool held = holds(
      "a training does the same in all three worlds", 170,
      [&] {
        distribution.draw();
        const TrainingScenario scenario = *training_scenarios();
        Asked asked;
        asked.text = scenario_text(scenario);
        const Agreement agreement = worlds.judge(asked);
        const TrainingCase& training = scenario.training;
        const int32_t ranks = training.strategy == Trained::ddp ? training.ranks : 1;
        count(distribution, ranks, defect_name(scenario), agreement);
        distribution.count("strategy " +
                           std::string(trained_names[static_cast<size_t>(training.strategy)]));
        distribution.count("layers " + layers_name(scenario));
        distribution.count("optimizer " + optimizer_name(scenario));
        distribution.count("precision " + precision_name(scenario));
        distribution.count("hook " + hook_name(scenario));
        expect_none(agreement);
      },
      "fleet_tests");
  conclude(held, distribution, worlds, "a training does the same in all three worlds");
}

}  // namespace three_worlds_test
