#include "rehearsal/measure/step_cycle.hpp"

#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "tests/unit/rehearsal/measure/advised.hpp"
#include "tests/unit/rehearsal/measure/marks_of_steps.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace step_cycle_test {

namespace {

std::optional<Time> mean_of_three(const std::vector<int64_t>& ends) {
  const std::vector<StepMark> marks = marks_of_steps(ends);
  const StepSequence sequence({}, marks);
  return mean_of_cycle(sequence, *steady_step(sequence), {}, 3);
}

}  // namespace

TEST_CASE("the usual step is the mean over a cycle") {
  // Behind the first step 10, 10, 40, twice, and a validation of 500 within the last cycle.
  CHECK(mean_of_three({7, 17, 27, 67, 77, 87, 127, 137, 147, 187, 697, 707, 747}) == Time(20));
  CHECK(mean_of_three({7, 17, 27}) == std::nullopt);
  CHECK(mean_of_three({7, 17, 27, 67}) == Time(20));
}

TEST_CASE("throughput counts the averaging of models") {
  const auto text = [](int64_t period) {
    return fmt::format(
        "version: 1\n"
        "cluster: {{preset: dgx-a100, nodes: 2, network: {{bandwidth: 1 Gb/s}}}}\n"
        "model: {{input: [512], layers: [{{Linear: [512, 512]}}], loss: MSELoss}}\n"
        "data: {{train: {{samples: 100_000, batch_size: 4}}}}\n"
        "trainer: {{accelerator: gpu, devices: 2, num_nodes: 2, max_steps: 61, "
        "limit_val_batches: 0, enable_checkpointing: false, strategy: {{DDPStrategy: "
        "{{ddp_comm_hook: noop_hook, model_averaging_period: {}, outer_optimizer: {{lr: "
        "0.7}}}}}}}}\n",
        period);
  };
  for (const int64_t period : {3, 20}) {
    std::vector<Job> jobs = rehearsed(text(period));
    const Prediction& prediction = jobs.front().result.results.prediction;
    REQUIRE(prediction.samples_per_s);
    REQUIRE(prediction.mean_step_time);
    CHECK(prediction.steps_of_cycle == period);
    CHECK(*prediction.mean_step_time > *prediction.step_time * 2);
    // 60 steps of 16 samples behind the first one; the last averaging is behind step 60.
    const double after_first = seconds(prediction.total_time - *prediction.first_step);
    CHECK(*prediction.samples_per_s == Approx(60 * 16 / after_first).epsilon(0.01));
  }
}

TEST_CASE("a cycle is as long as what differs in it") {
  const auto cycle_of = [](const std::string& lightning, const std::string& strategy, int devices,
                           int accumulated) {
    std::vector<Job> jobs = rehearsed(fmt::format(
        "version: 1\nversions: {{lightning: \"{}\"}}\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
        "model: {{input: [8], layers: [{{Linear: [8, 4]}}], loss: MSELoss}}\n"
        "data: {{train: {{samples: 1024, batch_size: 4}}}}\nverify: {{numerics: false}}\n"
        "trainer: {{accelerator: gpu, devices: {}, max_steps: 30, limit_val_batches: 0, "
        "accumulate_grad_batches: {}, enable_checkpointing: false, strategy: {}}}\n",
        lightning, devices, accumulated, strategy));
    REQUIRE(jobs.front().result.ran());
    return jobs.front().result.results.prediction.steps_of_cycle;
  };
  const auto bagua = [](const std::string& arguments) {
    return "{BaguaStrategy: {hierarchical: false, algorithm: " + arguments + "}}";
  };
  CHECK(cycle_of("2.6", "ddp", 2, 1) == 1);
  // Every second step pairs, every third all four: both together every sixth.
  CHECK(cycle_of("2.6",
                 "{DDPStrategy: {ddp_comm_hook: noop_hook, model_averager: "
                 "{HierarchicalModelAverager: {period_group_size_dict: {2: 2, 3: 4}}}}}",
                 4, 1) == 6);
  // Every sixth forward, of which a step has 1, 2 or 4.
  const std::string sixth = bagua("low_precision_decentralized, communication_interval: 6");
  CHECK(cycle_of("1.9", sixth, 4, 1) == 6);
  CHECK(cycle_of("1.9", sixth, 4, 2) == 3);
  CHECK(cycle_of("1.9", sixth, 4, 4) == 3);
  // Each step another of the two ranks of the other half.
  CHECK(cycle_of("1.9", bagua("decentralized, peer_selection_mode: shift_one"), 4, 1) == 2);
}

}  // namespace step_cycle_test
