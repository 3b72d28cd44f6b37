// What a run of many ranks that differ will take.
#include "rehearsal/run/run_forecast.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace run_forecast_test {

namespace {

OneRun run_of(const std::string& text, std::optional<int32_t> ranks_max) {
  const LoadedScenarios loaded = source_of_text(text).load();
  REQUIRE(loaded.ok());
  RunRequest request;
  request.simulated_ranks_max = ranks_max;
  return run_once(loaded.scenarios.front(), request);
}

// Two ranks of four are slow, each at its own pace.
const std::string healthy = R"yaml(version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {layers: [{Linear: [8, 8]}], input: [8], loss: MSELoss}
trainer: {accelerator: gpu, devices: 4, strategy: ddp, max_steps: 4}
data: {train: {samples: 64, batch_size: 4}}
verify: {numerics: false}
)yaml";
const std::string slow = healthy + R"yaml(faults:
  - {straggler: {slowdown: 2, rank: 1}}
  - {straggler: {slowdown: 3, rank: 2}}
)yaml";

}  // namespace

TEST_CASE("a run of more ranks than may be simulated does not begin") {
  const OneRun alike = run_of(healthy, 3);
  CHECK(alike.ran);
  CHECK(simulated_ranks(alike) < 4);
  const OneRun all = run_of(slow, 4);
  CHECK(all.ran);
  CHECK(simulated_ranks(all) == 4);
  CHECK_FALSE(run_of(slow, 3).ran);
}

// 4096 x 9,000 operations; times and bytes of each as run_forecast.cpp has them from
// docs/performance.md.
TEST_CASE("a forecast is of all operations of all ranks") {
  const RunForecast found = forecast(4096, 9'000);
  CHECK(found.operations == 36'864'000);
  CHECK(found.seconds == Approx(36'864'000 * 1.5e-6));
  CHECK(found.memory == Bytes(int64_t{36'864'000} * 110));
  CHECK(text_of(found) ==
        "4096 ranks differ, so each is simulated: about 36.9 M operations, 55 s and 3.8 GiB");
}

}  // namespace run_forecast_test
