// Functions, caught exceptions and host threads of a program.
#include <catch2/catch.hpp>

#include "tests/unit/io/scenario/memory_files.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace control_statements_test {

namespace {

Rehearsal ran(const std::string& text) { return std::move(rehearsed(text).front().result); }

std::string codes(const Rehearsal& rehearsal) {
  std::string text;
  for (const Finding& finding : rehearsal.findings) {
    text += (text.empty() ? "" : ", ") + (finding.code.empty() ? finding.title : finding.code);
  }
  return text;
}

std::string codes_of_main(const std::string& program) {
  return codes(
      ran("version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s, latency: 1 us}}\n"
          "program:\n" +
          program));
}

std::string training(const std::string& program, const std::string& more = "") {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
         "data: {train: {samples: 16, batch_size: 2}}\n"
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1}\n" +
         more + "program:\n" + program;
}

}  // namespace

TEST_CASE("return in a function ends the function alone") {
  CHECK(codes_of_main(R"yaml(
  functions:
    share:
      - let: {x: "full(2, 1.0)"}
      - all_reduce: x
      - return
      - raise: never
  main: [{call: share}, {assert: "x[0] == 2"}, barrier]
)yaml")
            .empty());
}

TEST_CASE("a rank that leaves a function early misses what stands there") {
  CHECK(codes_of_main(R"yaml(
  functions:
    share: [{if: rank == 1, then: [return]}, barrier]
  main: [{call: share}]
)yaml") == "LS101");
}

TEST_CASE("recursion ends as in Python") {
  CHECK(codes_of_main(R"yaml(
  functions:
    down: [{if: left > 0, then: [{let: {left: left - 1}}, {call: down}]}]
  main: [{let: {left: 900}}, {call: down}, {assert: left == 0}]
)yaml")
            .empty());
  const std::string endless = codes_of_main(R"yaml(
  functions:
    down: [{call: down}]
  main: [{call: down}]
)yaml");
  CHECK(endless.find("maximum recursion depth exceeded") != std::string::npos);
}

TEST_CASE("a call of no function is refused with the nearest") {
  const LoadedScenarios loaded = load_text(
      "version: 1\ncluster: {ranks: 2}\nprogram:\n  functions: {share: [barrier]}\n"
      "  main: [{call: shaer}]\n");
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK(loaded.diagnostics[0].message == "there is no function `shaer`");
  CHECK(loaded.diagnostics[0].remedy == "did you mean `share`?");
}

TEST_CASE("a forward in a function is the forward of the step") {
  const Rehearsal own = ran(training(R"yaml(
  functions: {model: [forward]}
  training_step: [{call: model}, {log: {name: l, value: loss, sync_dist: true}}]
)yaml"));
  const Rehearsal plain = ran(training(R"yaml(
  training_step: [forward, {log: {name: l, value: loss, sync_dist: true}}]
)yaml"));
  CHECK(codes(own).empty());
  CHECK(own.results.prediction.total_time == plain.results.prediction.total_time);
}

TEST_CASE("try catches what Python catches, and the run goes on") {
  CHECK(codes_of_main(R"yaml(
  main:
    - try: {do: [{let: {a: 1}}, {raise: no such file}], except: [{let: {a: 2}}]}
    - assert: a == 2
    - try: {do: [{let: {b: 1 // (rank - rank)}}], except: [{let: {b: 7}}]}
    - assert: b == 7
    - barrier
)yaml")
            .empty());
}

TEST_CASE("an exception that one rank catches keeps the ranks in step, or not") {
  CHECK(codes_of_main(R"yaml(
  main:
    - try:
        do: [{if: rank == 1, then: [{raise: corrupt sample}]}, barrier]
        except: [barrier]
)yaml")
            .empty());
  CHECK(codes_of_main(R"yaml(
  main:
    - try:
        do: [{if: rank == 1, then: [{raise: corrupt sample}]}, barrier]
        except: [{host: 1 ms}]
)yaml") == "LS101");
}

TEST_CASE("an exception of the framework and of a fault can be caught around fit") {
  const std::string program = R"yaml(
  main:
    - try: {do: [fit], except: [{let: {failed: true}}]}
    - assert: failed
)yaml";
  CHECK(codes(ran(training(program, "faults: [{exception: {ranks: [0, 1], at: step 1}}]\n")))
            .empty());
}

TEST_CASE("a hang cannot be caught") {
  CHECK(codes_of_main(R"yaml(
  main:
    - try: {do: [{if: rank == 0, then: [barrier]}], except: [{host: 1 ms}]}
)yaml") == "LS101");
}

TEST_CASE("host threads run side by side, and the rank goes on when all have ended") {
  const Rehearsal own = ran(bare_text(2, R"yaml(
    - threads:
        - [{host: 3 ms}, {all_reduce: {elements: 100}}, {let: {a: 1}}]
        - [{host: 4 ms}, {let: {b: 2}}]
    - assert: a + b == 3
)yaml"));
  CHECK(codes(own).empty());
  CHECK(own.results.prediction.total_time >= 4_ms);
  CHECK(own.results.prediction.total_time < 5_ms);
}

TEST_CASE("two threads that call collectives of one group keep no order") {
  const Rehearsal shared = ran(bare_text(2, R"yaml(
    - threads:
        - [{all_reduce: {elements: 100}}]
        - [{all_reduce: {elements: 100}}]
)yaml"));
  REQUIRE(shared.findings.size() == 1);
  CHECK(shared.findings[0].code == "LS103");
  CHECK(shared.findings[0].level == Level::warning);
}

TEST_CASE("the exception of a thread comes out of `threads`, once all have ended") {
  CHECK(codes_of_main(R"yaml(
  main:
    - try:
        do: [{threads: [[{raise: broken}], [{host: 1 ms}, {let: {b: 2}}]]}]
        except: [{let: {a: 1}}]
    - assert: a + b == 3
)yaml")
            .empty());
}

TEST_CASE("what the trainer does is not modelled in a thread") {
  const Rehearsal refused = ran(training(R"yaml(
  training_step: [{threads: [[forward], [{host: 1 ms}]]}]
)yaml"));
  REQUIRE(refused.unsupported());
}

TEST_CASE("state_dict is local to a rank") {
  CHECK(codes(ran(training("  on_train_epoch_end: [{if: rank == 0, then: [state_dict]}]\n")))
            .empty());
}

}  // namespace control_statements_test
