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

// Measured (docs/performance.md): 1,024 ranks of 8,876 operations took 11.6 s and 0.96 GiB, 4,096
// took 53.5 s and 3.7 GiB. Machines differ, so a forecast has to be within half as much again.
TEST_CASE("a forecast is near what was measured") {
  const RunForecast fewer = forecast(1024, 8'876);
  CHECK(fewer.seconds == Approx(11.6).epsilon(0.5));
  CHECK(static_cast<double>(fewer.memory.count()) == Approx(0.96 * (1 << 30)).epsilon(0.5));
  const RunForecast more = forecast(4096, 8'876);
  CHECK(more.operations == 36'356'096);
  CHECK(more.seconds == Approx(53.5).epsilon(0.5));
  CHECK(static_cast<double>(more.memory.count()) == Approx(3.7 * (1 << 30)).epsilon(0.5));
}

TEST_CASE("a forecast says what it is of") {
  CHECK(text_of({4096, 36'864'000, 55.3, Bytes(int64_t{4} << 30)}) ==
        "4096 ranks differ, so each is simulated: about 36.9 M operations, 55 s and 4.0 GiB");
}

}  // namespace run_forecast_test
