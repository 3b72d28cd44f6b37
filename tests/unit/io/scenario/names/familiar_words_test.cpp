// What users write who know the frameworks: the message says what a scenario calls it.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/io/scenario/memory_files.hpp"

namespace lockstep::familiar_words_test {
namespace {

const std::string training =
    "version: 1\ntrainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 2}\n"
    "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
    "data: {train: {samples: 16, batch_size: 4}}\n";

Diagnostic only(const std::string& text) {
  const LoadedScenarios loaded = test::load_text(text);
  CAPTURE(render(loaded.diagnostics, loaded.sources));
  REQUIRE(loaded.diagnostics.size() == 1);
  return loaded.diagnostics.front();
}

std::string remedy_of_step(const std::string& statement) {
  return only(training + "program:\n  training_step:\n    - " + statement + "\n").remedy;
}

}  // namespace

TEST_CASE("names of other vocabularies are answered with the word of the format") {
  CHECK(only(training + "program: {on_val_epoch_end: [barrier]}\n").remedy ==
        "did you mean `on_validation_epoch_end`?");
  CHECK(only(training + "program: {val_step: [barrier]}\n").remedy ==
        "did you mean `validation_step`?");
  CHECK(remedy_of_step("all_reduce: {tensor: loss, op: mean}") == "did you mean `avg`?");
  CHECK(remedy_of_step("{if: self.trainer.is_global_zero, then: [barrier]}") ==
        "did you mean `is_global_zero`?");
}

TEST_CASE("a statement of Python is answered with the statement to write") {
  CHECK(remedy_of_step("self.log(\"x\", loss)") == "write - log: {name: .., value: ..}");
  CHECK(remedy_of_step("dist.all_reduce(loss)").find("write - all_reduce: {") == 0);
  CHECK(remedy_of_step("{let: {x: loss.item()}}") == "write `loss`: its value is the same here");
  CHECK(remedy_of_step("{let: {x: loss.mean()}}") == "write mean(loss)");
  CHECK(remedy_of_step("{if: is_global_zero, then: [barrier], elif: x}") ==
        "write else: [{if: CONDITION, then: [..]}]");
}

TEST_CASE("what a statement lacks is shown in its whole shape") {
  CHECK(remedy_of_step("log: {value: loss}") == "write {log: {name: .., value: ..}}");
  CHECK(remedy_of_step("{if: is_global_zero}") == "write {if: CONDITION, then: [..]}");
  CHECK(remedy_of_step("log: {name: a b, value: loss}") == "a log key cannot contain white space");
}

TEST_CASE("a key that belongs elsewhere names its section") {
  std::string text = training;
  text.replace(text.find("max_steps: 2"), 12, "max_steps: 2, batch_size: 4");
  CHECK(only(text).remedy == "`batch_size` belongs under `data.train`");
}

TEST_CASE("an object of another format is shown as this one writes it") {
  CHECK(only(training + "optimizer: {type: AdamW, lr: 1e-3}\n").remedy ==
        "arguments go inside: {AdamW: {lr: 1e-3}}");
  std::string text = training;
  text.replace(text.find("max_steps: 2"), 12,
               "max_steps: 2, callbacks: [{class_path: my.MyCallback}]");
  CHECK(only(text).remedy == "a callback of your own: write its hooks under `program`");
}

TEST_CASE("a missing colon and a wrong indentation are named as such") {
  const Diagnostic colon = only(training + "logger {TensorBoardLogger: {}}\n");
  CHECK(colon.message == "a colon is missing after `logger`");
  CHECK(colon.place.line == 5);
  CHECK(colon.place.column == 1);
  const Diagnostic key = only(training +
                              "program:\n  training_step:\n    - if: is_global_zero\n"
                              "     then:\n        - barrier\n");
  CHECK(key.message == "this line is indented by 5, unlike any line that it could belong to");
  CHECK(key.remedy == "indent it by 6 or 4 or 2 or 0 columns, as the lines above");
  CHECK(key.place.line == 8);
  const Diagnostic item = only(training + "program:\n  training_step:\n  - barrier\n - barrier\n");
  CHECK(item.place.line == 8);
  CHECK(item.place.column == 2);
}

TEST_CASE("a statement is not changed by --set") {
  LoadOptions options;
  options.set = {"program.training_step.0.barrier=world"};
  const LoadedScenarios loaded =
      test::load_text(training + "program: {training_step: [barrier]}\n", options);
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK(loaded.diagnostics.front().remedy.find("`cases`") != std::string::npos);
}

TEST_CASE("an overridden hook that sets up processes is answered with the keys that stand for it") {
  const Diagnostic group = only(training + "program: {init_dist_connection: [barrier]}\n");
  CHECK(group.message == "`program` has no key `init_dist_connection`");
  CHECK(group.remedy.find("process_group: {backend: gloo") != std::string::npos);
  const Diagnostic ddp = only(training + "program: {configure_ddp: [barrier]}\n");
  CHECK(ddp.remedy.find("DDPStrategy: {find_unused_parameters: true}") != std::string::npos);
}

}  // namespace lockstep::familiar_words_test
