// Strategies that shard, in the simulator, on threads over Gloo and by processes over LibTorch:
// parameters in host memory, rows kept by pairs of ranks, and one owner of each parameter.
#include <catch2/catch.hpp>

#include "tests/fleet/three_worlds.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("strategies that shard do the same in all three worlds") {
  ThreeWorlds worlds(std::chrono::milliseconds(1000));
  for (const char* name : {"zero_3_offload", "fsdp2_kept_in_pairs", "fairscale_buffers"}) {
    INFO(name);
    Asked asked;
    asked.path = LOCKSTEP_SOURCE_DIR "/tests/data/sharded.yaml";
    asked.scenario_case = name;
    const Agreement agreement = worlds.judge(asked);
    CHECK(agreement.failures == std::vector<std::string>{});
    CHECK_FALSE(agreement.hung);
  }
}
