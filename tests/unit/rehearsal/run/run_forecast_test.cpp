// What a run of many ranks that differ will take.
#include "rehearsal/run/run_forecast.hpp"

#include <fmt/format.h>

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

const std::string healthy = R"yaml(version: 1
cluster: {preset: dgx-a100, nodes: 8}
model: {layers: [{Linear: [8, 8]}], input: [8], loss: MSELoss}
trainer: {accelerator: gpu, devices: 8, num_nodes: 8, strategy: ddp, max_steps: 4}
data: {train: {samples: 1024, batch_size: 4}}
verify: {numerics: false}
)yaml";

// Each of the 64 ranks at a pace of its own.
std::string slow() {
  std::string text = healthy + "faults:\n";
  for (int rank = 0; rank < 64; ++rank) {
    text += fmt::format("  - {{straggler: {{slowdown: 1.{:02}, rank: {}}}}}\n", rank + 1, rank);
  }
  return text;
}

}  // namespace

TEST_CASE("a run of more ranks than may be simulated does not begin") {
  const OneRun alike = run_of(healthy, 63);
  CHECK(alike.ran);
  CHECK(simulated_ranks(alike) < 64);
  const OneRun all = run_of(slow(), 64);
  CHECK(all.ran);
  CHECK(simulated_ranks(all) == 64);
  CHECK_FALSE(run_of(slow(), 63).ran);
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
