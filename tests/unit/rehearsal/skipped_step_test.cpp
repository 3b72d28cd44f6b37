// A rank that leaves out a batch is paired one batch apart: the finding names the first call that
// it left out, not the first that looks different.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace skipped_step_test {
using cli::Rehearsal;

namespace {

Rehearsal trained(const std::string& condition, const std::string& more = "") {
  return std::move(rehearsed(R"yaml(
version: 1
versions: {lightning: "2.2"}
cluster: {preset: dgx-a100, nodes: 1}
trainer: {accelerator: gpu, devices: 4, strategy: ddp, max_epochs: 2, num_sanity_val_steps: 0,
          callbacks: [{ModelCheckpoint: {monitor: val_loss}}]}
data: {batch_size: 8, train: {samples: 256}, val: {samples: 32}}
program:
  training_step:
)yaml" + more +
                             "    - if: " + condition + R"yaml(
      then: [return]
  validation_step:
    - log: {name: val_loss, value: loss, sync_dist: true}
)yaml")
                       .front()
                       .result);
}

}  // namespace

TEST_CASE("a rank that skips a step is reported where it skips it") {
  // Harmless differences between ranks come before.
  for (const char* more : {"", "    - {if: rank == 0, then: [{host: 1 us}]}\n"}) {
    const Rehearsal ran = trained("rank == 1 and batch_idx == 2 and epoch == 0", more);
    CHECK(ran.hung);
    REQUIRE(ran.findings.size() == 1);
    const Finding& finding = ran.findings[0];
    CHECK(finding.code == "LS102");
    CHECK(finding.title.find("rank 1 leaves out all_reduce of training_step number 3") == 0);
    CHECK(finding.ranks == RankSet{1});
    REQUIRE(finding.why.ways.size() == 2);
    CHECK(finding.why.ways[0].value == "true");
    CHECK(finding.why.ways[0].ranks == RankSet{1});
  }
}

TEST_CASE("a step that a rank skips by its own data is LS109") {
  const Rehearsal ran = trained("rank == 2 and batch_idx == 1 and self.seen > 3",
                                "    - let: {self.seen: rank * 2}\n");
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings[0].code == "LS109");
  CHECK(ran.findings[0].ranks == RankSet{2});
}

TEST_CASE("a statement that has the name of its hook is named once") {
  const Rehearsal ran = std::move(rehearsed(R"yaml(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}
trainer: {accelerator: gpu, devices: 2, strategy: deepspeed_stage_2, max_epochs: 1,
          num_sanity_val_steps: 0, limit_val_batches: 0}
data: {train: {samples: 32, batch_size: 4}}
program:
  optimizer_step:
    - if: rank == 1 and batch_idx == 1
      then: [optimizer_closure]
      else: [optimizer_step]
)yaml")
                                      .front()
                                      .result);
  REQUIRE_FALSE(ran.findings.empty());
  CHECK(ran.findings.front().title.find("rank 0 runs optimizer_step (call 2 of the hook) that rank "
                                        "1 does not") == 0);
}

}  // namespace skipped_step_test
