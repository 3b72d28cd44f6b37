// Steps are left out up to the one in which a scheduler raises.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace scheduler_end_test {

namespace {

cli::Rehearsal trained(const std::string& verify) {
  return std::move(
      rehearsed("version: 1\n"
                "cluster: {preset: cpu}\n"
                "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
                "data: {train: {samples: 48, batch_size: 2}}\n"
                "lr_scheduler: {OneCycleLR: {max_lr: 0.1, total_steps: 300, interval: step}}\n"
                "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 50}\n"
                "verify: {numerics: false" +
                verify + "}\n")
          .front()
          .result);
}

}  // namespace

TEST_CASE("a scheduler raises in its step, however many are left out before") {
  const cli::Rehearsal left_out = trained("");
  const cli::Rehearsal whole = trained(", all_steps: true");
  CHECK_FALSE(left_out.run.result.journal->repeated.empty());
  CHECK(whole.run.result.journal->repeated.empty());
  for (const cli::Rehearsal* one : {&left_out, &whole}) {
    // An epoch has 12 batches. Torch raises in the 301st step, behind that of the optimizer.
    CHECK(one->run.result.ends.front().kind == RankEnd::Kind::raised);
    CHECK(one->run.preparation.log->ranks.front().steps == 301);
    CHECK(one->run.preparation.log->ranks.front().epochs == 25);
  }
  CHECK(left_out.run.result.total_time == whole.run.result.total_time);
}

}  // namespace scheduler_end_test
