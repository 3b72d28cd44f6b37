// What ranks of a pipeline compute and wait for, by stage and micro-batch.
#include "rehearsal/measure/pipeline_times.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "cli/render/pipeline_lines.hpp"
#include "model/strategy/pipeline/pipeline_marks.hpp"
#include "tests/unit/rehearsal/measure/advised.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace pipeline_times_test {

namespace {

/// Four stages that take 1 ms forth and 2 ms back for each of four micro-batches.
Rehearsal piped(const std::string& schedule, const std::string& more = "",
                const std::string& lightning = "2.6", int samples = 32,
                const std::string& all_steps = "false", int micro_batches = 4) {
  return advised(fmt::format(R"yaml(version: 1
versions: {{lightning: "{}"}}
cluster: {{preset: dgx-h100, nodes: 1}}
model:
  input: [1]
  layers:
    - Cost: {{parameters: 1, forward: 1 ms, backward: 2 ms}}
    - Cost: {{parameters: 1, forward: 1 ms, backward: 2 ms}}
    - Cost: {{parameters: 1, forward: 1 ms, backward: 2 ms}}
    - Cost: {{parameters: 1, forward: 1 ms, backward: 2 ms}}
  loss: MSELoss
data: {{train: {{samples: {}, batch_size: {}}}}}
verify: {{all_steps: {}}}
trainer: {{accelerator: gpu, devices: 4, max_epochs: 1, num_sanity_val_steps: 0{},
           strategy: {{PipelineStrategy: {{schedule: {}, n_microbatches: {}}}}}}}
)yaml",
                             lightning, samples, micro_batches, all_steps, more, schedule,
                             micro_batches));
}

double ms(Time time) { return 1000 * seconds(time); }

}  // namespace

// By hand: m forwards of 1 ms and m backwards of 2 ms; before them a rank waits for the stages in
// front of it, 1 ms each, between them for those behind it, 3 ms each. What is left of the 9 ms of
// the bubble it waits at the end, for the loss that the last stage sends to all.
TEST_CASE("ranks of a pipeline wait for each other as long as its bubble") {
  for (const char* schedule : {"GPipe", "1F1B"}) {
    CAPTURE(schedule);
    const Rehearsal ran = piped(schedule);
    const auto times = pipeline_times(ran.run, ran.results);
    REQUIRE(times);
    REQUIRE(times->ranks.size() == 4);
    CHECK(times->actions.size() == 4 * 8);
    for (int32_t at = 0; at < 4; ++at) {
      const TimesOfPipelineRank& rank = times->ranks[static_cast<size_t>(at)];
      CAPTURE(at);
      CHECK(rank.stages == std::vector<int32_t>{at});
      CHECK(ms(rank.forward) == Approx(4).margin(0.1));
      CHECK(ms(rank.backward) == Approx(8).margin(0.1));
      CHECK(rank.weight_gradient == Time{});
      CHECK(ms(rank.waited) == Approx(at + 3 * (3 - at)).margin(0.1));
      CHECK(ms(rank.step.idle) == Approx(9).margin(0.1));
      CHECK(rank.most_held == (std::string(schedule) == "GPipe" ? 4 : 4 - at));
      CHECK(rank.memory_peak == ran.results.ranks[static_cast<size_t>(at)].memory.peak);
    }
  }
}

// The steady step is one of those that were left out: it has the times that it has in the training.
TEST_CASE("waits of a step that was left out are those of that step") {
  const Rehearsal some = piped("1F1B", "", "2.6", 800);
  const Rehearsal all = piped("1F1B", "", "2.6", 800, "true");
  CHECK(some.results.prediction.simulated_steps < 100);
  CHECK(all.results.prediction.simulated_steps == 200);
  const auto waits = pipeline_times(some.run, some.results);
  const auto of_all = pipeline_times(all.run, all.results);
  REQUIRE((waits && of_all));
  REQUIRE(waits->actions.size() == of_all->actions.size());
  for (size_t at = 0; at < waits->actions.size(); ++at) {
    CAPTURE(at);
    CHECK(waits->actions[at].start == of_all->actions[at].start);
    CHECK(waits->actions[at].finish == of_all->actions[at].finish);
    CHECK(waits->actions[at].waited == of_all->actions[at].waited);
    CHECK(waits->actions[at].after_input == of_all->actions[at].after_input);
  }
}

// Lightning 2.5.2 has nothing by which ranks meet between batches. A stage keeps as many
// micro-batches as there are stages from it to the last one, also those that steps before brought,
// and has 4 x 3 ms to compute in a step.
TEST_CASE("ranks of an asynchronous pipeline hold what steps before brought, and do not wait") {
  const Rehearsal ran = piped("PipeDream-2BW", "", "2.5.2");
  const auto times = pipeline_times(ran.run, ran.results);
  REQUIRE(times);
  REQUIRE(times->ranks.size() == 4);
  for (int32_t at = 0; at < 4; ++at) {
    const TimesOfPipelineRank& rank = times->ranks[static_cast<size_t>(at)];
    CAPTURE(at);
    CHECK(ms(rank.forward) == Approx(4).margin(0.1));
    CHECK(ms(rank.backward) == Approx(8).margin(0.1));
    CHECK(ms(rank.waited) == Approx(0).margin(0.2));
    CHECK(rank.most_held == 4 - at);
  }
}

TEST_CASE("a wait names the stage and the micro-batch that it is for") {
  const Rehearsal ran = piped("GPipe");
  const auto times = pipeline_times(ran.run, ran.results);
  REQUIRE(times);
  const std::vector<TimedAction> waits = longest_waits(*times, 2);
  REQUIRE(waits.size() == 2);
  for (int32_t rank = 0; rank < 2; ++rank) {
    const TimedAction& wait = waits[static_cast<size_t>(rank)];
    CHECK(wait.rank == rank);
    CHECK(ms(wait.waited) == Approx(9 - 3 * rank).margin(0.1));
    REQUIRE(wait.waited_for);
    CHECK(wait.action == PipelineAction{PipelineWork::backward, rank, 0});
    CHECK(*wait.waited_for == PipelineAction{PipelineWork::backward, rank + 1, 0});
    CHECK(ms(wait.after_input) < 0.1);
  }
  const std::string text = render_pipeline(ran);
  CAPTURE(text);
  CHECK(text.find("before stage 0 backward of micro-batch 0: for stage 1 backward of micro-batch 0 "
                  "on rank 1") != std::string::npos);
}

TEST_CASE("a training without a pipeline has no stages") {
  const Rehearsal ran = advised(R"yaml(version: 1
cluster: {preset: dgx-h100, nodes: 1}
model: {input: [4], layers: [{Linear: [4, 4]}], loss: MSELoss}
data: {train: {samples: 32, batch_size: 4}}
trainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: ddp}
)yaml");
  CHECK(!pipeline_times(ran.run, ran.results));
  CHECK(render_pipeline(ran).empty());
  CHECK(pipeline_json(ran).is_null());
}

// By hand: 400 micro-batches of 3 ms, and before or behind them 9 ms of filling and emptying.
TEST_CASE("micro-batches that were left out are among the actions and the times of a step") {
  const Rehearsal ran = piped("1F1B", "", "2.6", 3 * 400, "false", 400);
  const Prediction& prediction = ran.results.prediction;
  REQUIRE(prediction.micro_batches);
  CHECK(prediction.micro_batches->all == 400);
  CHECK(prediction.micro_batches->simulated < 300);  // until the launch queue is full
  CHECK(ran.results.is_folded());
  CHECK(ms(*prediction.step_time) == Approx(1209).epsilon(0.002));
  const auto times = pipeline_times(ran.run, ran.results);
  REQUIRE(times);
  REQUIRE(times->actions.size() == 4 * 800);
  for (const TimesOfPipelineRank& rank : times->ranks) {
    CHECK(ms(rank.forward) == Approx(400));
    CHECK(ms(rank.backward) == Approx(800));
    CHECK(rank.most_held == 4 - rank.rank);
  }
  for (int32_t each = 0; each < 400; ++each) {  // of the last rank: a forward, its backward
    const auto at = static_cast<size_t>(3 * 800 + 2 * each);
    REQUIRE(times->actions[at].action == PipelineAction{PipelineWork::forward, 3, each});
    REQUIRE(times->actions[at + 1].action == PipelineAction{PipelineWork::backward, 3, each});
  }
}

TEST_CASE("no micro-batch is left out where every step is asked for") {
  const Rehearsal ran = piped("1F1B", "", "2.6", 3 * 400, "true", 400);
  CHECK_FALSE(ran.results.prediction.micro_batches);
  CHECK_FALSE(ran.results.is_folded());
}

}  // namespace pipeline_times_test
