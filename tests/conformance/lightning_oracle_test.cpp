// Our trainer on threads over Gloo against recordings of Lightning's (docs/oracle.md).
#include <catch2/catch.hpp>

#include "tests/conformance/gloo_world.hpp"
#include "tests/unit/oracle/lightning_differences.hpp"
#include "tests/unit/oracle/lightning_recording.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace lightning_oracle_test {
using std::chrono::milliseconds;

namespace {

bool some_rank_waits(const nlohmann::json& ranks) {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const auto& rank) { return rank["ended"] == "stuck"; });
}

}  // namespace

TEST_CASE("the trainer on threads over Gloo does what Lightning's does") {
  backend::Fleet fleet;
  for (const LightningRecording& recording : lightning_recordings()) {
    DYNAMIC_SECTION(recording.name) {
      const auto known = known_differences(recording.name);
      const bool waits = some_rank_waits(recording.ranks) ||
                         std::find(known.begin(), known.end(), "ended") != known.end();
      const milliseconds deadline(waits ? 300 : 10'000);
      const OurTraining ours =
          our_training(recording, [&](const RunOptions& options, const ProgramOfRank& program) {
            return backend::run(options, backend::ends_after(deadline, &fleet), program);
          });
      REQUIRE(ours.refused == std::vector<std::string>{});
      INFO("ours   " << ours.ranks << "\ntheirs " << recording.ranks);
      CHECK(differing_parts(ours.ranks, recording.ranks) == known);
    }
  }
}

}  // namespace lightning_oracle_test
