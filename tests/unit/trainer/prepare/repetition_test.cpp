// What a scenario says of steps and epochs that repeat earlier ones.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/strategy/registry.hpp"
#include "model/trainer/loop/counted_decisions.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace repetition_test {

namespace {

Repetition repetition_of_text(const std::string& program, const std::string& more = "",
                              const std::string& trainer = "") {
  const Scenario scenario = scenario_of(
      "version: 1\n"
      "cluster: {preset: cpu}\n"
      "model: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
      "data: {train: {samples: 24, batch_size: 2}}\n"
      "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 3" +
      trainer + "}\n" + more + (program.empty() ? "" : "program: " + program + "\n") +
      "verify: {numerics: false}\n");
  return prepare(scenario, standard_strategies()).repetition;
}

std::vector<int64_t> kinds(const Repetition& repetition, CountedDecisions::Counters first,
                           int64_t window, int32_t rank = 0) {
  Place place;
  place.rank = RankId{static_cast<uint32_t>(rank)};
  place.world_size = 2;
  return CountedDecisions(repetition, {place}).kinds_of_pass(first, window);
}

}  // namespace

TEST_CASE("statements that depend on counters alone are evaluated ahead") {
  const Repetition each_hundred =
      repetition_of_text("{on_train_batch_end: [{if: batch_idx % 100 == 0, then: [barrier]}]}");
  CHECK(each_hundred.batches);
  CHECK(each_hundred.epochs);
  CHECK(each_hundred.counted.size() == 1);
  CHECK_FALSE(each_hundred.ranks_decide_apart);

  const Repetition by_step = repetition_of_text(
      "{on_train_batch_end: [{if: batch_idx % 6 == 0 or global_step % 4 == 1, then: [barrier]}]}",
      "", ", accumulate_grad_batches: 2");
  CHECK(by_step.batches);
  CHECK_FALSE(by_step.ranks_decide_apart);

  const Repetition by_name = repetition_of_text(
      "{training_step: [{let: {turn: batch_idx % 3}}, forward, {if: turn == 1, then: [barrier]}]}");
  CHECK(by_name.batches);
  CHECK(by_name.counted.size() == 1);

  const Repetition by_rank =
      repetition_of_text("{on_train_batch_end: [{if: batch_idx % 5 == rank, then: [barrier]}]}");
  CHECK(by_rank.batches);
  CHECK(by_rank.ranks_decide_apart);
}

TEST_CASE("what else a statement depends on differs between steps") {
  const auto why_not = [](const std::string& program) {
    const Repetition repetition = repetition_of_text(program);
    CHECK_FALSE(repetition.batches);
    return repetition.why_not;
  };
  CHECK(why_not("{training_step: [forward, {if: loss > 1, then: [barrier]}]}") ==
        "`if` (line 6) depends on loss");
  // The name of the module is that of the batch before.
  CHECK(why_not("{training_step: [{if: self.last == 1, then: [barrier]}, forward], "
                "on_train_batch_end: [{let: {self.last: batch_idx}}]}") ==
        "`if` (line 6) depends on self.last");
  CHECK(
      why_not("{on_train_batch_end: [{if: random() < 0.5 and batch_idx > 1, then: [barrier]}]}") ==
      "`if` (line 6) depends on random numbers");
  CHECK(why_not("{on_train_batch_end: [{let: {rank: batch_size}}, "
                "{if: batch_idx == rank, then: [barrier]}]}") ==
        "`if` (line 6) depends on batch_idx");
}

TEST_CASE("how often manual optimization steps is not known ahead") {
  const Repetition repetition = repetition_of_text(
      "{automatic_optimization: false, training_step: [forward, backward, optimizer_step, "
      "{if: global_step % 2 == 0, then: [barrier]}]}");
  CHECK_FALSE(repetition.batches);
  CHECK(repetition.why_not == "`if` (line 6) depends on global_step");
}

TEST_CASE("batches that decide alike are of one kind") {
  const Repetition by_step =
      repetition_of_text("{on_train_batch_end: [{if: global_step % 2 == 0, then: [barrier]}]}");
  // Windows of two batches: steps 0 0 1 1 2 2 before, and 1, 2, 3 behind every second batch.
  const std::vector<int64_t> of_steps = kinds(by_step, {0, 0, 0, 6}, 2);
  REQUIRE(of_steps.size() == 6);
  CHECK(of_steps[0] == of_steps[4]);
  CHECK(of_steps[1] == of_steps[5]);
  CHECK(of_steps[0] != of_steps[2]);
  CHECK(of_steps[1] != of_steps[3]);

  const Repetition by_rank =
      repetition_of_text("{on_train_batch_end: [{if: batch_idx % 5 == rank, then: [barrier]}]}");
  const std::vector<int64_t> on_rank_1 = kinds(by_rank, {0, 0, 0, 7}, 1, 1);
  CHECK(on_rank_1[1] == on_rank_1[6]);
  CHECK(on_rank_1[1] != on_rank_1[0]);
  CHECK(on_rank_1[0] == on_rank_1[5]);
}

TEST_CASE("an expression without a value makes its batch one of its own") {
  const Repetition repetition =
      repetition_of_text("{on_train_batch_end: [{if: 12 % batch_idx == 0, then: [barrier]}]}");
  const std::vector<int64_t> of_batches = kinds(repetition, {0, 0, 0, 8}, 1);
  CHECK(of_batches[0] < 0);  // 12 % 0
  CHECK(of_batches[1] == of_batches[6]);
  CHECK(of_batches[5] == of_batches[7]);
  CHECK(of_batches[5] != of_batches[6]);
}

TEST_CASE("schedulers let steps repeat, unless something else than their count decides") {
  const auto with = [](const std::string& scheduler, const std::string& program = "") {
    return repetition_of_text(program, "lr_scheduler: " + scheduler + "\n");
  };
  CHECK(with("{StepLR: {step_size: 2}}").epochs);
  CHECK(with("{OneCycleLR: {max_lr: 0.1, total_steps: 50, interval: step}}").epochs);
  const Repetition by_hook =
      with("{StepLR: {step_size: 2}}", "{lr_scheduler_step: [{lr_scheduler_step: {}}]}");
  CHECK_FALSE(by_hook.batches);
  CHECK(by_hook.why_not == "`lr_scheduler_step` decides how schedulers step");
  const Repetition monitoring =
      with("{ReduceLROnPlateau: {monitor: loss}}",
           "{training_step: [forward, {log: {name: loss, value: loss}}]}");
  CHECK(monitoring.batches);
  CHECK_FALSE(monitoring.epochs);
  CHECK(monitoring.why_not == "ReduceLROnPlateau looks at what was logged before");
}

}  // namespace repetition_test
