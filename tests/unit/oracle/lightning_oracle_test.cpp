// Our trainer against recordings of Lightning's (docs/oracle.md): the same collectives, hooks,
// samples, values and weights on every rank.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/oracle/lightning_differences.hpp"
#include "tests/unit/oracle/lightning_recording.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace lightning_oracle_test {

namespace {

RunResult simulated(const RunOptions& options, const ProgramOfRank& program) {
  const sim::ExplicitComputeCost compute;
  sim::FlatNetworkCost network(options.world_size, BytesPerSecond(1'000'000'000), Time(1'000'000));
  sim::SimulationOptions simulation;
  simulation.compute = &compute;
  simulation.communication = &network;
  return sim::simulate(options, simulation, program);
}

}  // namespace

TEST_CASE("the trainer does what Lightning's does") {
  for (const LightningRecording& recording : lightning_recordings()) {
    DYNAMIC_SECTION(recording.name) {
      const OurTraining ours = our_training(recording, simulated);
      REQUIRE(ours.refused == std::vector<std::string>{});
      INFO("ours   " << ours.ranks << "\ntheirs " << recording.ranks);
      CHECK(differing_parts(ours.ranks, recording.ranks) == known_differences(recording.name));
    }
  }
}

TEST_CASE("every exception among the recordings of Lightning names one of them") {
  const std::vector<LightningRecording> recordings = lightning_recordings();
  CHECK(recordings.size() >= 110);
  for (const std::string& name : excepted_recordings()) {
    INFO(name);
    CHECK(std::ranges::count(recordings, name, &LightningRecording::name) == 1);
  }
}

}  // namespace lightning_oracle_test
