// Ranks that stop by data of their own: however that is written, it is one LS109 with one remedy.
#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace stop_decision_test {

namespace {

using Lines = std::vector<std::string>;

std::string training_text(const std::string& hook, const Lines& statements, int devices = 2,
                          const std::string& strategy = "ddp") {
  std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "trainer: {accelerator: gpu, devices: " +
      std::to_string(devices) + ", strategy: " + strategy +
      ", max_epochs: 3, num_sanity_val_steps: 0, enable_checkpointing: false}\n"
      "data: {train: {samples: 16, batch_size: 4}, val: {samples: 8, batch_size: 4}}\n"
      "program:\n  " +
      hook + ":\n    - let: {mine: \"full(1, 1.0 * rank)\"}\n";
  for (const std::string& statement : statements) {
    text += "    - " + statement + "\n";
  }
  return text;
}

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

struct Spelling {
  const char* name;
  Lines statements;
  std::string condition;  ///< that the remedy reduces
};

const std::vector<Spelling> own_data = {
    {"value", {"should_stop: sum(mine) > 0"}, "sum(mine) > 0"},
    {"branch", {"{if: sum(mine) > 0, then: [{should_stop: true}]}"}, "sum(mine) > 0"},
    {"else",
     {"{if: sum(mine) == 0, then: [{host: 1 us}], else: [{should_stop: true}]}"},
     "not (sum(mine) == 0)"},
    {"nested",
     {"{if: epoch == 0, then: [{if: sum(mine) > 0, then: [{should_stop: true}]}]}"},
     "sum(mine) > 0"},
    {"nested outside",
     {"{if: sum(mine) > 0, then: [{if: epoch < 2, then: [{should_stop: true}]}]}"},
     "sum(mine) > 0"},
    {"bound", {"let: {bad: sum(mine) > 0}", "should_stop: bad"}, "bad"},
    {"bound branch",
     {"let: {bad: sum(mine) > 0}", "{if: bad, then: [{should_stop: true}]}"},
     "bad"},
    {"behind another branch",
     {"{if: is_global_zero, then: [{host: 1 us}]}",
      "{if: sum(mine) > 0, then: [{should_stop: true}]}"},
     "sum(mine) > 0"},
    {"of two statements",
     {"{if: epoch == 7, then: [{should_stop: true}]}",
      "{if: sum(mine) > 0, then: [{should_stop: true}]}"},
     "sum(mine) > 0"},
    {"return before it",
     {"{if: sum(mine) == 0, then: [return]}", "should_stop: true"},
     "sum(mine) == 0"},
};

const std::vector<Spelling> not_known = {
    {"value", {"should_stop: unknown"}, "unknown"},
    {"branch", {"{if: unknown, then: [{should_stop: true}]}"}, "unknown"},
    {"else", {"{if: unknown, then: [{host: 1 us}], else: [{should_stop: true}]}"}, "not (unknown)"},
    {"nested", {"{if: epoch == 0, then: [{if: unknown, then: [{should_stop: true}]}]}"}, "unknown"},
    {"bound", {"let: {bad: unknown}", "should_stop: bad"}, "bad"},
    {"part", {"should_stop: unknown and epoch == 0"}, "unknown and epoch == 0"},
};

const std::vector<std::string> hooks = {"training_step", "on_train_batch_end", "on_train_epoch_end",
                                        "validation_step", "on_validation_epoch_end"};

void check_one(const Spelling& spelling, const std::string& hook) {
  INFO(hook << ": " << spelling.name);
  const Rehearsal ran = only(training_text(hook, spelling.statements));
  REQUIRE(ran.findings.size() == 1);
  const Finding& finding = ran.findings.front();
  CHECK(finding.code == "LS109");
  CHECK(finding.level == Level::error);
  const bool quoted = spelling.condition.find_first_of("[],") != std::string::npos;
  const std::string value = quoted ? "\"" + spelling.condition + "\"" : spelling.condition;
  REQUIRE(finding.fix.size() == 3);
  CHECK(finding.fix[1] ==
        "  - {reduce_boolean_decision: {value: " + value + ", all: false, as: decided}}");
  CHECK(finding.fix[2] == "  - {should_stop: decided}");
}

}  // namespace

TEST_CASE("every way to stop by the rank's own data is one LS109 with one remedy") {
  for (const std::string& hook : hooks) {
    for (const Spelling& spelling : own_data) {
      // There a `return` skips the batch, and so its gradients, before anybody stops.
      if (hook != "training_step" || std::string(spelling.name) != "return before it") {
        check_one(spelling, hook);
      }
    }
  }
}

TEST_CASE("every way to stop by what is not known is one LS109 with one remedy") {
  for (const std::string hook : {"training_step", "on_train_epoch_end"}) {
    for (const Spelling& spelling : not_known) {
      check_one(spelling, hook);
    }
  }
}

TEST_CASE("the remedy of ranks that stop apart gives no findings") {
  for (const std::string& hook : hooks) {
    for (const std::string condition : {"sum(mine) > 0", "not (sum(mine) == 0)", "unknown"}) {
      INFO(hook << ": " << condition);
      const Rehearsal ran = only(training_text(
          hook, {"{reduce_boolean_decision: {value: " + condition + ", all: false, as: decided}}",
                 "should_stop: decided"}));
      CHECK(ran.findings.empty());
      const Rehearsal branched = only(training_text(
          hook, {"{reduce_boolean_decision: {value: " + condition + ", all: false, as: decided}}",
                 "{if: decided, then: [{should_stop: true}]}"}));
      CHECK(branched.findings.empty());
    }
  }
}

TEST_CASE("one process stops by itself") {
  for (const auto* spellings : {&own_data, &not_known}) {
    for (const Spelling& spelling : *spellings) {
      INFO(spelling.name);
      CHECK(only(training_text("on_train_epoch_end", spelling.statements, 1, "auto"))
                .findings.empty());
      CHECK(
          only(training_text("on_train_epoch_end", spelling.statements, 2, "dp")).findings.empty());
    }
  }
}

TEST_CASE("a rank that stops by its number keeps its code and gets the remedy of a stop") {
  const Rehearsal ran = only(training_text("on_train_epoch_end", {"should_stop: is_global_zero"}));
  REQUIRE(ran.findings.size() == 1);
  CHECK(ran.findings.front().code != "LS109");
  CHECK(ran.findings.front().fix.back() == "  - {should_stop: decided}");
}

}  // namespace stop_decision_test
