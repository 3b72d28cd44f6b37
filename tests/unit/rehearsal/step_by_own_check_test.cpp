// Ranks that decide each for itself whether the optimizer steps, as a check for overflow does.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace step_by_own_check_test {

namespace {

using Lines = std::vector<std::string>;

// Rank 0 has an outlier: its loss (260 - 1)^2 / 4 = 16770 times 8 is beyond fp16, rank 1's is 0.
std::string training_text(const std::string& strategy, const Lines& statements) {
  std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {input: [1], loss: MSELoss, layers: [{Linear: {in_features: 1, out_features: 1,"
      " initial: {weight: [[1]], bias: 0}}}]}\n"
      "optimizer: {SGD: {lr: 0.125}}\n"
      "trainer: {accelerator: gpu, devices: 2, max_epochs: 2, num_sanity_val_steps: 0,"
      " limit_val_batches: 0, enable_checkpointing: false, strategy: " +
      strategy +
      "}\n"
      "data: {train: {inputs: [[1], [1], [1], [1], [1], [1], [1], [1]], targets: [[260], [1],"
      " [1], [1], [1], [1], [1], [1]], samples: 8, batch_size: 4, shuffle: false}}\n"
      "program:\n  automatic_optimization: false\n  training_step:\n"
      "    - forward\n    - zero_grad\n    - {backward: loss * 8}\n";
  for (const std::string& statement : statements) {
    text += "    - " + statement + "\n";
  }
  return text;
}

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

const Lines steps_where_finite = {"{if: loss * 8 < 65504, then: [optimizer_step]}"};
const Lines skips_where_infinite = {
    "{if: loss * 8 >= 65504, then: [{host: 1 us}], else: [optimizer_step]}"};

// With it every rank's own decision is taken once for all ranks.
void check_fix(const std::string& strategy, const Lines& statements, const std::string& decision) {
  INFO(strategy << ": " << statements.front());
  const Rehearsal ran = only(training_text(strategy, statements));
  REQUIRE(ran.findings.size() == 1);
  const Finding& finding = ran.findings.front();
  const bool waits = strategy != "fsdp" && strategy != "ddp";
  CHECK(finding.code == (waits ? "LS109" : "LS305"));
  CHECK(std::ranges::count(finding.fix, "  - {reduce_boolean_decision: {value: " + decision +
                                            ", as: decided}}") == 1);
}

}  // namespace

TEST_CASE("a step is taken where every rank's check allows it") {
  for (const char* strategy : {"ddp", "fsdp", "deepspeed_stage_2", "deepspeed_stage_3"}) {
    check_fix(strategy, steps_where_finite, "loss * 8 < 65504, all: true");
  }
}

TEST_CASE("a step is skipped where one rank's check asks for it") {
  for (const char* strategy : {"ddp", "fsdp", "deepspeed_stage_2", "deepspeed_stage_3"}) {
    check_fix(strategy, skips_where_infinite, "loss * 8 >= 65504, all: false");
  }
}

// Rank 0 alone would have skipped the step of the first epoch, and of the second.
TEST_CASE("with that remedy all ranks skip the steps that one of them must skip") {
  for (const char* strategy : {"ddp", "fsdp", "deepspeed_stage_2", "deepspeed_stage_3"}) {
    INFO(strategy);
    const Rehearsal ran = only(training_text(
        strategy, {"{reduce_boolean_decision: {value: loss * 8 < 65504, all: true, as: decided}}",
                   "{if: decided, then: [optimizer_step]}", "assert: not decided"}));
    CHECK(ran.findings.empty());
  }
}

}  // namespace step_by_own_check_test
