// Steps that a timeline shows though they repeat others: as they are in a run that leaves out none.
#include <catch2/catch.hpp>

#include "cli/step_range.hpp"
#include "tests/unit/cli/render/timeline/trace_rules.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace timeline_steps_test {

namespace {

// Four epochs of 50 steps with a validation in their middle, a checkpoint behind each.
std::string training(const std::string& strategy) {
  return R"yaml(
version: 1
cluster: {preset: dgx-a100, nodes: 1}
model: {input: [64], layers: [{Linear: [64, 256]}, ReLU, {Linear: [256, 64]}], loss: MSELoss}
optimizer: {AdamW: {lr: 3e-4}}
trainer: {accelerator: gpu, devices: 2, max_epochs: 4, val_check_interval: 25, strategy: )yaml" +
         strategy + R"yaml(}
data: {train: {samples: 200, batch_size: 2}, val: {samples: 40, batch_size: 2}}
program:
  training_step: [{log: {name: loss, value: loss}}]
  validation_step: [{log: {name: val_loss, value: loss, sync_dist: true}}]
)yaml";
}

Json trace(const std::string& text, std::optional<KeptSteps> kept, bool all_steps) {
  CaseSource source = source_of_text(text);
  if (all_steps) {
    source.set.emplace_back("verify.all_steps=true");
  }
  Collected collected = collect(source);
  REQUIRE(collected.diagnostics.empty());
  RehearseRequest request;
  request.explore = false;
  request.keeps_steps = kept;
  rehearse_all(collected.jobs, request, Judges::quantities, 1);
  Json events = trace_of(collected.jobs.front().result);
  CHECK(broken_rules(events) == std::vector<std::string>());
  return events;
}

const Json* step(const Json& events, int rank, int64_t number) {
  for (const Json& event : events) {
    if (event.value("cat", "") == "step" && event.at("pid") == rank &&
        event.at("name") == "step " + std::to_string(number)) {
      return &event;
    }
  }
  return nullptr;
}

double begin_of(const Json& event) { return event.at("ts").get<double>(); }
double end_of(const Json& event) { return begin_of(event) + event.value("dur", 0.0); }

/// Everything of a rank that is within these steps: slices of streams and host threads, memory.
std::vector<std::string> within(const Json& events, int rank, const KeptSteps& steps) {
  const Json* const first = step(events, rank, steps.first);
  const Json* const last = step(events, rank, steps.last);
  REQUIRE(first != nullptr);
  REQUIRE(last != nullptr);
  std::vector<std::string> found;
  for (const Json& event : events) {
    const bool has_time = event.contains("ts") && event.at("pid") == rank;
    if (has_time && begin_of(event) >= begin_of(*first) && end_of(event) <= end_of(*last)) {
      found.push_back(event.dump());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

int64_t steps_drawn(const Json& events) {
  return std::count_if(events.begin(), events.end(), [](const Json& event) {
    return event.value("cat", "") == "step" && event.at("pid") == 0;
  });
}

void check_stretch(const std::string& text, const Json& all, const KeptSteps& steps) {
  INFO("steps " << steps.first << " to " << steps.last);
  const Json some = trace(text, steps, false);
  for (int64_t number = steps.first; number <= steps.last; ++number) {
    CHECK(step(some, 0, number) != nullptr);
  }
  CHECK(steps_drawn(some) < steps_drawn(all) / 2);
  for (int rank = 0; rank < 2; ++rank) {
    const std::vector<std::string> found = within(some, rank, steps);
    CHECK(std::ssize(found) > 10 * (steps.last - steps.first + 1));
    CHECK(found == within(all, rank, steps));
  }
}

}  // namespace

TEST_CASE("steps that a timeline is asked for are drawn as in a run that leaves out none") {
  for (const char* strategy : {"ddp", "fsdp"}) {
    INFO(strategy);
    const std::string text = training(strategy);
    const Json all = trace(text, std::nullopt, true);
    REQUIRE(steps_drawn(all) == 200);
    // Without being asked for, the step is not there.
    REQUIRE(step(trace(text, std::nullopt, false), 0, 190) == nullptr);
    check_stretch(text, all, {190, 190});
    check_stretch(text, all, {108, 112});
    check_stretch(text, all, {122, 127});  // a validation between them
    check_stretch(text, all, {98, 101});   // the end of an epoch, with its checkpoint
    check_stretch(text, all, {0, 3});
    check_stretch(text, all, {197, 199});
  }
}

TEST_CASE("steps that accumulate batches over the ends of epochs are counted as steps") {
  // 7 batches in an epoch, and 2 in a step: 80 epochs have 280 steps, of which Lightning counts
  // 240.
  std::string text = training("{DeepSpeedStrategy: {stage: 1}}");
  const auto replace = [&text](const std::string& what, const std::string& by) {
    REQUIRE(text.find(what) != std::string::npos);
    text.replace(text.find(what), what.size(), by);
  };
  replace("max_epochs: 4, val_check_interval: 25",
          "max_epochs: 80, accumulate_grad_batches: 2, limit_val_batches: 0, logger: false");
  replace("samples: 200", "samples: 28");
  const Json all = trace(text, std::nullopt, true);
  REQUIRE(steps_drawn(all) == 280);
  REQUIRE(step(trace(text, std::nullopt, false), 0, 210) == nullptr);
  check_stretch(text, all, {208, 212});
}

TEST_CASE("a range of steps is a first and a last one, from 0 on") {
  CHECK(step_range_of("5000-5010")->first == 5000);
  CHECK(step_range_of("5000-5010")->last == 5010);
  CHECK(step_range_of("7")->last == 7);
  CHECK(step_range_of("0-0")->last == 0);
  for (const char* wrong : {"", "-", "5-", "-5", "5-3", "-5-3", "5--3", "a-b", "1-2-3", "1.5-2",
                            "1-99999999999999999999"}) {
    INFO(wrong);
    CHECK_FALSE(step_range_of(wrong).has_value());
  }
}

}  // namespace timeline_steps_test
