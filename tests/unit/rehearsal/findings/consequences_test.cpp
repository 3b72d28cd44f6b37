#include "rehearsal/findings/consequences.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace {

std::vector<Finding> mixed_calls_and_replicas(Level level_of_calls, int64_t call = 5) {
  Finding calls =
      finding_of("LS103", level_of_calls, "rank 0 and rank 1 do not call all_reduce in order");
  calls.call = call;
  return {calls,
          finding_of("LS305", Level::error, "rank 1 does not hold the same weight as rank 0")};
}

OneRun run_of_two_ranks() {
  return std::move(
      test::rehearsed("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
                      "data: {train: {samples: 16, batch_size: 4}}\n"
                      "trainer: {accelerator: gpu, devices: 2, max_steps: 1, strategy: ddp}\n")
          .front()
          .result.run);
}

}  // namespace

TEST_CASE("replicas that got the data of other calls are reported with these calls") {
  OneRun run = run_of_two_ranks();
  std::vector<Finding> findings = mixed_calls_and_replicas(Level::error);
  fold_consequences(run, findings);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].code == "LS103");
  CHECK(findings[0].also == std::vector<std::string>{"LS305"});
  CHECK(findings[0].follows ==
        std::vector<std::string>{"rank 1 does not hold the same weight as rank 0"});
}

TEST_CASE(
    "an order that might differ has mixed no data, so differing replicas have another cause") {
  OneRun run = run_of_two_ranks();
  std::vector<Finding> findings = mixed_calls_and_replicas(Level::warning);
  fold_consequences(run, findings);
  CHECK(findings.size() == 2);
  findings = mixed_calls_and_replicas(Level::error, 0);  // about no call
  fold_consequences(run, findings);
  CHECK(findings.size() == 2);
}

TEST_CASE("calls that waited forever gave no rank wrong data") {
  OneRun run = run_of_two_ranks();
  run.result.hung = true;
  std::vector<Finding> findings = mixed_calls_and_replicas(Level::error);
  fold_consequences(run, findings);
  CHECK(findings.size() == 2);
}
