// The scenarios of Lightning's recordings once more, each in the simulator, on threads over Gloo
// and by processes over LibTorch. What Lightning did is compared with ours elsewhere
// (docs/oracle.md).
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/fleet/three_worlds.hpp"
#include "tests/unit/oracle/lightning_recording.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("the scenario of every Lightning recording does the same in all three worlds") {
  ThreeWorlds worlds(std::chrono::milliseconds(500));
  for (const LightningRecording& recording : lightning_recordings()) {  // sections would start anew
    Asked asked;
    asked.text = recording.scenario;
    asked.path = recording.name + ".yaml";
    INFO("tests/data/oracle/lightning, " << recording.name);
    CHECK(worlds.judge(asked).failures == std::vector<std::string>{});
  }
}
