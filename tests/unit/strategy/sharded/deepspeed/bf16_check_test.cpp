// Whether ranks agree that gradients in bf16 are finite, by release: the default of
// bf16.check_grad_overflow in deepspeed/runtime/precision_config.py is false from 0.17.1 to 0.19.2
// and true in 0.19.3, 0.19.6, 0.19.7 and 0.19.8; only zero/stage_1_and_2.py reads it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/strategy/sharded/deepspeed/deepspeed_sites.hpp"
#include "rehearsal/run/one_run.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::cli;

namespace bf16_check_test {

namespace {

constexpr int64_t steps = 3;

std::string training(const std::string& release, const std::string& strategy,
                     const std::string& precision = "bf16-true",
                     const std::string& backward = "loss") {
  return "version: 1\n"
         "versions: {deepspeed: \"" +
         release +
         "\"}\n"
         "cluster: {preset: dgx-a100, nodes: 1}\n"
         "model: {input: [8], layers: [{Linear: [8, 16]}, ReLU, {Linear: [16, 4]}], loss: "
         "MSELoss}\n"
         "optimizer: {AdamW: {lr: 0.01}}\n"
         "data: {train: {samples: 24, batch_size: 4}}\n"
         "trainer: {accelerator: gpu, devices: 2, max_epochs: 1, precision: " +
         precision + ", strategy: " + strategy +
         "}\n"
         "program:\n"
         "  automatic_optimization: false\n"
         "  training_step: [zero_grad, forward, {backward: " +
         backward +
         "}, optimizer_step]\n"
         "verify: {all_steps: true, all_ranks: true}\n";
}

OneRun run_of(const std::string& text) { return run_once(test::scenario_of(text), RunRequest()); }

int64_t flags(const std::string& text) {
  const OneRun run = run_of(text);
  INFO(text);
  REQUIRE(run.ran);
  int64_t count = 0;
  run.result.journal->lane(0, 0).for_each([&](const Row& row) {
    count += row.row == RowKind::op && row.kind == OpKind::all_reduce &&
                     row.site == site_id(deepspeed_sites::share_overflow)
                 ? 1
                 : 0;
  });
  return count;
}

std::string with_key(const std::string& value) {
  return "{DeepSpeedStrategy: {config: {zero_optimization: {stage: 2}, bf16: {enabled: true, "
         "check_grad_overflow: " +
         value + "}}}}";
}

}  // namespace

TEST_CASE("ranks share a flag of overflow in bf16 where the release does by default") {
  for (const char* stage : {"{DeepSpeedStrategy: {stage: 1}}", "deepspeed_stage_2"}) {
    INFO(stage);
    CHECK(flags(training("0.16.4", stage)) == 0);
    CHECK(flags(training("0.19.2", stage)) == 0);
    CHECK(flags(training("0.19.3", stage)) == steps);
    CHECK(flags(training("0.19.8", stage)) == steps);
    CHECK(flags(training("0.19.8", stage, "32-true")) == 0);
    CHECK(flags(training("0.16.4", stage, "16-true")) == steps);
  }
  CHECK(flags(training("0.19.8", "deepspeed_stage_3")) == 0);
}

TEST_CASE("check_grad_overflow of the configuration counts from 0.17.1 on") {
  CHECK(flags(training("0.19.8", with_key("false"))) == 0);
  CHECK(flags(training("0.19.2", with_key("true"))) == steps);
  CHECK(flags(training("0.17.1", with_key("true"))) == steps);
  CHECK(flags(training("0.16.4", with_key("true"))) == 0);
}

// A factor beyond the range of bf16 makes every gradient infinite.
TEST_CASE("a step whose gradients are not finite is skipped where they are checked") {
  const auto ends_finite = [](const std::string& release) {
    const OneRun run = run_of(training(release, "deepspeed_stage_2", "bf16-true", "loss * 1e200"));
    REQUIRE(run.ran);
    const RankLog& log = run.preparation.log->ranks.front();
    REQUIRE_FALSE(log.final_parameters.empty());
    const Values& weights = log.final_parameters.front();
    bool is_finite = true;
    for (int64_t index = 0; index < weights.size(); ++index) {
      is_finite = is_finite && std::isfinite(weights.number(index));
    }
    const bool tells = std::ranges::any_of(log.known_differences, [](const auto& known) {
      return known.cause == "3 optimizer steps were skipped, because gradients were not finite";
    });
    CHECK(tells == is_finite);
    return is_finite;
  };
  CHECK(ends_finite("0.19.8"));
  CHECK_FALSE(ends_finite("0.19.2"));
}

}  // namespace bf16_check_test
