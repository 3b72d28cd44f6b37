// Whichever phase a limit ends: the answer says what was looked at, and that it is partial.
#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "cli/render/render.hpp"
#include "rehearsal/case_workers.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace limits_of_phases_test {

namespace {

/// A rehearsal that the user interrupts when its scenario is read for the so-many-th time, 1 being
/// what every rehearsal reads first.
Rehearsal interrupted_at(int reading, const std::string& text, bool find_smallest = false) {
  const auto deadline = std::make_shared<const Deadline>();
  CaseSource source = source_of_text(text);
  const auto readings = std::make_shared<int>(0);
  source.reader = [text, deadline, readings, reading](
                      const std::string&, size_t) -> std::variant<std::string, FileError> {
    if (++*readings == reading) {
      deadline->interrupt();
    }
    return text;
  };
  LoadedScenarios loaded = source.load();
  REQUIRE(loaded.ok());
  RehearseRequest request;
  request.find_smallest = find_smallest;
  request.deadline = deadline;
  Rehearsal rehearsal =
      rehearse(source, std::make_shared<const Scenario>(std::move(loaded.scenarios.front())),
               std::make_shared<const Sources>(std::move(loaded.sources)), request);
  CHECK(*readings >= reading);
  return rehearsal;
}

bool names_left_out(const Rehearsal& rehearsal, const std::string& what) {
  const std::string text = render_verify(rehearsal, Style{});
  INFO(text);
  CHECK(text.find("Checked: ") != std::string::npos);
  return text.find(what, text.find("Not checked: ")) != std::string::npos;
}

// Values of its 10^6 steps would take too long, those of the first 185 do not
// (explore/first_values_test.cpp).
const std::string long_training = R"yaml(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
model:
  input: [64]
  layers: [{Linear: {in_features: 64, out_features: 128, bias: false}}]
  loss: MSELoss
optimizer: {SGD: {lr: 0.01}}
data: {train: {samples: 51200, batch_size: 256}}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 10000, logger: false,
          enable_checkpointing: false}
)yaml";

const std::string short_training = R"yaml(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [8], layers: [{Linear: [8, 8]}], loss: MSELoss}
data: {train: {samples: 64, batch_size: 4}}
trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1}
)yaml";

}  // namespace

TEST_CASE("values of the first steps that a limit ends are named as not looked at") {
  const Rehearsal rehearsal = interrupted_at(2, long_training);
  CHECK(rehearsal.undecided == "the command was interrupted");
  CHECK(names_left_out(rehearsal, "values of steps 1 to 185 (the command was interrupted)"));
}

TEST_CASE("the comparison with one device that a limit ends is named as not looked at") {
  const Rehearsal rehearsal = interrupted_at(2, short_training);
  CHECK(rehearsal.undecided == "the command was interrupted");
  CHECK(names_left_out(rehearsal, "one device ("));
}

TEST_CASE("a finding stands where a limit ends the search for a smaller example") {
  const Rehearsal rehearsal = interrupted_at(2, bare_text(64, guarded_statements), true);
  REQUIRE(rehearsal.findings.size() == 1);
  CHECK(rehearsal.findings.front().code == "LS101");
  CHECK(rehearsal.undecided.empty());
  CHECK(exit_code_of(rehearsal, false) == ExitCode::findings);
  CHECK(names_left_out(rehearsal, "all smaller examples of LS101 (the command was interrupted)"));
}

TEST_CASE("a case that does not notice its limit tells what it was doing") {
  struct Gate {
    std::mutex guard;
    std::condition_variable changed;
    bool is_open = false;
    bool has_ended = false;
  };
  const auto gate = std::make_shared<Gate>();
  CaseWork work;
  work.scenario = std::make_shared<const Scenario>();
  work.sources = std::make_shared<const Sources>();
  const Deadline deadline(0.05);
  work.request.deadline = std::make_shared<const Deadline>(deadline.for_another_case());
  const CaseResults results = run_cases(
      {work},
      [gate](const CaseWork& own) {
        note_phase(own.request.deadline.get(), "findings of 20 steps on 64 ranks were looked for");
        std::unique_lock lock(gate->guard);
        gate->changed.wait(lock, [&gate] { return gate->is_open; });
        gate->has_ended = true;
        gate->changed.notify_all();
        return Rehearsal();
      },
      deadline, 1);
  CHECK(results.leaves_threads);
  CHECK(results.rehearsals.front().undecided ==
        "the time limit was reached while findings of 20 steps on 64 ranks were looked for");
  std::unique_lock lock(gate->guard);
  gate->is_open = true;
  gate->changed.notify_all();
  gate->changed.wait(lock, [&gate] { return gate->has_ended; });
}

TEST_CASE("a run says which limit ended it") {
  CHECK(std::string(Deadline(1e-9).reason()) == "the time limit was reached");
  const Deadline calls = Deadline().with_calls_at_most(10);
  CHECK(std::string(calls.reason()) == "the limit of calls was reached");
  CHECK(std::string(Deadline(1e-9).with_calls_at_most(10).reason()) ==
        "the time limit was reached");
  calls.interrupt();
  CHECK(std::string(calls.reason()) == "the command was interrupted");
}

}  // namespace limits_of_phases_test
