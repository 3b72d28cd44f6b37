// Orders of what happens at the same time are drawn at the beginning of a long training.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::drawn_orders_test {
namespace {

Rehearsal verified(const std::string& more) {
  return std::move(test::rehearsed("version: 1\nversions: {lightning: \"1.6\"}\n"
                                   "cluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
                                   "data: {train: {samples: 8_000, batch_size: 8}}\n"
                                   "verify: {numerics: false, single_device: false}\n"
                                   "trainer: {accelerator: gpu, devices: 2, strategy: horovod, " +
                                   more + "}\n")
                       .front()
                       .result);
}

std::string interleavings_of(const Rehearsal& ran) {
  for (const std::string& text : ran.coverage.looked_at) {
    if (text.find("interleaving") != std::string::npos) {
      return text;
    }
  }
  return "";
}

}  // namespace

TEST_CASE("threads of a long training interleave otherwise in as many steps as are simulated") {
  const Rehearsal ran = verified("max_epochs: 20");
  REQUIRE(ran.results.prediction.steps == 20 * 500);
  const int64_t simulated = ran.results.prediction.simulated_steps;
  CHECK(simulated < 200);
  CHECK(ran.coverage.schedules > 1);
  CHECK(interleavings_of(ran).find(" of host threads in the first " + std::to_string(simulated) +
                                   " steps") != std::string::npos);
}

TEST_CASE("threads of a short training interleave otherwise up to its end") {
  const Rehearsal ran = verified("max_steps: 3");
  CHECK(interleavings_of(ran) == "8 random interleavings of host threads");
}

}  // namespace lockstep::cli::drawn_orders_test
