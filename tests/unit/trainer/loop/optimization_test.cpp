// What a training batch does to the weights, by version; that of 2.6 is held by recordings.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace optimization_test {

namespace {

std::vector<double> trained(const std::string& version, const std::string& trainer,
                            const std::string& program) {
  const Ran ran = run_text(
      "version: 1\nversions: {lightning: \"" + version +
          "\"}\nmodel: {input: [4], layers: [{Linear: [4, 2]}], loss: MSELoss}\n"
          "optimizer: {SGD: {lr: 0.125}}\n"
          "trainer: {accelerator: cpu, devices: 1, max_epochs: 1, enable_checkpointing: false, "
          "num_sanity_val_steps: 0, " +
          trainer +
          "}\ndata: {train: {samples: 8, batch_size: 2, shuffle: false}, val: {samples: 2}}\n"
          "program:\n  validation_step: [forward]\n" +
          program,
      standard_strategies());
  REQUIRE(ran.result.ends[0].message == "");
  std::vector<double> numbers;
  for (const Values& values : ran.log(0).final_parameters) {
    for (int64_t i = 0; i < values.size(); ++i) {
      numbers.push_back(values.number(i));
    }
  }
  REQUIRE_FALSE(numbers.empty());
  return numbers;
}

// Gradients of a quarter of the loss, from this batch on, and one step.
std::string by_hand(int first_batch) {
  return "  automatic_optimization: false\n  training_step:\n    - forward\n    - if: batch_idx "
         ">= " +
         std::to_string(first_batch) +
         "\n      then: [{backward: 0.25 * loss}]\n    - if: batch_idx == 3\n"
         "      then: [optimizer_step]\n";
}

}  // namespace

// CHANGELOG of 2.1, issue 18710.
TEST_CASE("before 2.1 a validation erases the gradients of the window in which it falls") {
  const std::string accumulating = "accumulate_grad_batches: 4, val_check_interval: 2";
  const std::string without = "limit_val_batches: 0";
  CHECK(trained("2.0.9", accumulating, "") == trained("2.0.9", without, by_hand(2)));
  CHECK(trained("2.1.0", accumulating, "") == trained("2.1.0", without, by_hand(0)));
  CHECK(trained("2.0.9", without, by_hand(2)) != trained("2.0.9", without, by_hand(0)));
}

TEST_CASE("clip_gradients without a number takes the Trainer's; without it nothing is clipped") {
  const std::string clipped = "gradient_clip_val: 0.25, limit_val_batches: 0";
  CHECK(trained("2.6", clipped, "  configure_gradient_clipping: [clip_gradients]\n") ==
        trained("2.6", clipped, ""));
  CHECK(trained("2.6", clipped, "  configure_gradient_clipping: [{host: 1 us}]\n") ==
        trained("2.6", "limit_val_batches: 0", ""));
  CHECK(trained("2.6", clipped, "") != trained("2.6", "limit_val_batches: 0", ""));
}

TEST_CASE("what a loop held is gone when on_exception runs") {
  const auto end_with = [](const std::string& statement) {
    return run_text(
               "version: 1\ntrainer: {accelerator: cpu, devices: 1, max_epochs: 1}\n"
               "program:\n  training_step: [forward, {log: {name: x, value: loss}}, "
               "{raise: stop}]\n  on_exception: [" +
                   statement + "]\n",
               standard_strategies())
        .result.ends[0]
        .message;
  };
  CHECK(end_with("{let: {y: mean(score)}}").find("`score` is not bound") != std::string::npos);
  CHECK(end_with("{let: {y: \"len(callback_metrics)\"}}") == "stop");
  CHECK(end_with("{log: {name: z, value: 1.0}}").find("self.log") != std::string::npos);
  CHECK(end_with("forward").find("forward has no batch here") != std::string::npos);
}

TEST_CASE("statements of optimization that come at the wrong place say so") {
  const auto end_with = [](const std::string& program, const std::string& more = "") {
    return run_text("version: 1\ntrainer: {accelerator: cpu, devices: 1, max_epochs: 1}\n" + more +
                        "program:\n" + program,
                    standard_strategies())
        .result.ends[0]
        .message;
  };
  const std::string manual = "  automatic_optimization: false\n  training_step: ";
  CHECK(end_with(manual + "[forward, {backward: loss}, {clip_gradients: 1.0}, forward, {backward: "
                          "loss}, optimizer_step]\n") ==
        "a backward between clip_gradients and optimizer_step is not modelled");
  CHECK(end_with(manual + "[forward, {backward: loss}, {clip_gradients: 1.0}, optimizer_step, "
                          "zero_grad]\n") == "");
  CHECK(end_with("  training_step: [forward, optimizer_closure]\n") ==
        "the closure exists only in the hook `optimizer_step`");
  CHECK(end_with(manual + "[forward, lr_scheduler_step]\n") ==
        "lr_scheduler_step: there are 0 schedulers, and this does not say which one is meant");
  const std::string one = "lr_scheduler: {StepLR: {step_size: 1}}\n";
  CHECK(end_with(manual + "[forward, {lr_scheduler_step: 1}]\n", one) ==
        "lr_scheduler_step: there is no scheduler 1 of 1");
  const std::string plateau = "lr_scheduler: {ReduceLROnPlateau: {monitor: x}}\n";
  CHECK(end_with(manual + "[forward, lr_scheduler_step]\n", plateau) ==
        "ReduceLROnPlateau.step() is missing the argument `metrics`");
}

}  // namespace optimization_test
