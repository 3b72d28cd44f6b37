#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace hanging_prediction_test {

// A prediction keeps no lists of what waits for what, until a run hangs.
TEST_CASE("a prediction that hangs names the same circle as verify") {
  const std::string text = R"yaml(
version: 1
versions: {lightning: "2.4"}
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}
data: {train: {samples: 36, batch_size: 4}, val: {samples: 12, batch_size: 4}}
trainer:
  accelerator: gpu
  devices: 4
  max_epochs: 1
  num_sanity_val_steps: 0
  enable_checkpointing: false
  strategy: {ParameterServerStrategy: {mode: batched, batch: 2}}
program:
  validation_step: [forward, {log: {name: val_loss, value: loss, sync_dist: true}}]
)yaml";
  std::vector<Job> explored = rehearsed(text);
  const Rehearsal& verified = explored.front().result;
  REQUIRE(verified.findings.size() == 1);
  CHECK(verified.findings.front().code == "LS106");
  Collected collected = collect(source_of_text(text));
  RehearseRequest request;
  request.explore = false;
  rehearse_all(collected.jobs, request, Judges::quantities, 1);
  const Rehearsal& predicted = collected.jobs.front().result;
  REQUIRE(predicted.findings.size() == 1);
  CHECK(predicted.findings.front().code == "LS106");
  CHECK(predicted.findings.front().title == verified.findings.front().title);
  CHECK(predicted.findings.front().fix == verified.findings.front().fix);
}

}  // namespace hanging_prediction_test
