#include "rehearsal/findings/weight_spread.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace weight_spread_test {

namespace {

/// One parameter of two elements on two ranks that average weights.
cli::OneRun decentralized() {
  const std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nversions: {lightning: \"1.6\"}\n"
      "model: {input: [2], loss: MSELoss, layers: [{Linear: {in_features: 2, out_features: 1, "
      "bias: false}}]}\ndata: {train: {samples: 16, batch_size: 4}}\n"
      "trainer: {accelerator: gpu, devices: 2, max_steps: 2, strategy: {BaguaStrategy: {algorithm: "
      "decentralized, hierarchical: false}}}\n";
  cli::OneRun run = std::move(rehearsed(text).front().result.run);
  REQUIRE(run.preparation.log->ranks.size() == 2);
  return run;
}

void set(cli::OneRun& run, size_t rank, std::vector<double> weights) {
  run.preparation.log->ranks[rank].final_parameters = {Values::of(DType::fp32, std::move(weights))};
}

}  // namespace

TEST_CASE("the spread of weights is the largest distance between ranks") {
  cli::OneRun run = decentralized();
  set(run, 0, {1, 5});
  set(run, 1, {3, 4.5});
  const auto spread = cli::weight_spread(run);
  REQUIRE(spread.has_value());
  CHECK(spread->apart == 2);
  CHECK(spread->parameter == "0.weight");
  set(run, 1, {1, 5});
  CHECK(cli::weight_spread(run)->apart == 0);
}

TEST_CASE("a weight that is no number on one rank is as far apart as can be, whichever rank") {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (const size_t rank : {0, 1}) {
    CAPTURE(rank);
    cli::OneRun run = decentralized();
    set(run, 0, {1, 5});
    set(run, 1, {3, 4.5});
    set(run, rank, {none, 5});
    CHECK(std::isnan(cli::weight_spread(run)->apart));
  }
}

}  // namespace weight_spread_test
