// What torch raises where a scheduler is made, with torch's words and the place of the argument.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace refused_schedulers_test {

namespace {

constexpr const char* before =
    "version: 1\ntrainer: {accelerator: cpu, devices: 2, strategy: ddp, max_epochs: 1}\n";

std::vector<Problem> stops_with(const std::string& scheduler, const std::string& optimizer) {
  std::vector<Problem> stops;
  for (const Problem& problem : prepare(scenario_of(before + ("optimizer: " + optimizer) +
                                                    "\nlr_scheduler: " + scheduler + "\n"),
                                        standard_strategies())
                                    .problems) {
    if (problem.stops()) {
      stops.push_back(problem);
    }
  }
  return stops;
}

void refuses_scheduler(const std::string& scheduler, const std::string& reason,
                       const std::string& optimizer = "{SGD: {lr: 0.1}}") {
  INFO(scheduler);
  const std::vector<Problem> stops = stops_with(scheduler, optimizer);
  for (const Problem& stop : stops) {
    UNSCOPED_INFO(stop.message);
  }
  REQUIRE(stops.size() == 1);
  CHECK(stops.front().kind == Problem::Kind::refused);
  CHECK(stops.front().code == "LS501");
  CHECK(stops.front().place.line == 4);
  CHECK(stops.front().place.column > 1);
  CHECK(stops.front().message.find(reason) != std::string::npos);
  CHECK_FALSE(stops.front().remedy.empty());
}

std::string load_error_of(const std::string& scheduler) {
  try {
    scenario_of(before + ("lr_scheduler: " + scheduler) + "\n");
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// How often OneCycle of a DeepSpeed configuration is not modelled for this reason.
int64_t unmodelled_of_cycle(const std::string& further, const std::string& reason,
                            const std::string& release = "0.19.8") {
  const Scenario scenario = scenario_of(
      "version: 1\nversions: {deepspeed: \"" + release +
      "\"}\ntrainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: "
      "{DeepSpeedStrategy: {config: {optimizer: {type: Adam, params: {lr: 0.1}}, scheduler: "
      "{type: OneCycle, params: {cycle_min_lr: 0.1, cycle_max_lr: 0.2" +
      further + "}}}}}}\n");
  const Preparation preparation = prepare(scenario, standard_strategies());
  return std::ranges::count_if(preparation.problems, [&reason](const Problem& problem) {
    return problem.kind == Problem::Kind::unsupported &&
           problem.message.find(reason) != std::string::npos;
  });
}

}  // namespace

// deepspeed/runtime/lr_schedules.py, _get_scale_factor: 0.19.4 counts stairs, 0.19.3 does not.
TEST_CASE("OneCycle of DeepSpeed in stairs is not modelled from the release on that has them") {
  CHECK(unmodelled_of_cycle(", cycle_first_stair_count: 2", "in stairs", "0.19.4") == 1);
  CHECK(unmodelled_of_cycle(", cycle_second_stair_count: 2", "in stairs", "0.19.4") == 1);
  CHECK(unmodelled_of_cycle(", cycle_first_stair_count: 2", "in stairs", "0.19.3") == 0);
  CHECK(unmodelled_of_cycle(", cycle_first_stair_count: 0", "in stairs", "0.19.4") == 0);
}

// The same file, _initialize_momentum: the beta is set as it is given, and Adam divides by
// 1 - beta^step.
TEST_CASE("OneCycle of DeepSpeed that makes a beta 1 is not modelled") {
  const auto of_momentum = [](const std::string& momentum) {
    return unmodelled_of_cycle(momentum, "momentum of 1 or more");
  };
  CHECK(of_momentum(", cycle_max_mom: 1.0") == 1);
  CHECK(of_momentum(", cycle_min_mom: 1.5") == 1);
  CHECK(of_momentum(", cycle_max_mom: 0.99") == 0);
  CHECK(of_momentum(", cycle_max_mom: 1.0, cycle_momentum: false") == 0);
}

TEST_CASE("OneCycleLR and CyclicLR refuse what torch refuses") {
  refuses_scheduler("{OneCycleLR: {total_steps: 10}}", "missing a required argument: 'max_lr'");
  refuses_scheduler("{OneCycleLR: {max_lr: 0.1, total_steps: 0}}",
                    "Expected positive integer total_steps, but got 0");
  refuses_scheduler("{OneCycleLR: {max_lr: 0.1, total_steps: 9, pct_start: 1.5}}",
                    "Expected float between 0 and 1 pct_start, but got 1.5");
  refuses_scheduler("{OneCycleLR: {max_lr: 0.1, total_steps: 9, anneal_strategy: poly}}",
                    "anneal_strategy must be one of 'cos' or 'linear', instead got poly");
  refuses_scheduler("{CyclicLR: {max_lr: 0.1}}", "missing a required argument: 'base_lr'");
  refuses_scheduler("{CyclicLR: {base_lr: 0.1, max_lr: 1, step_size_up: 0}}", "ZeroDivisionError");
  refuses_scheduler("{CyclicLR: {base_lr: 0.1, max_lr: 1, mode: sine}}", "mode is invalid");
}

TEST_CASE("cycle_momentum needs an optimizer with momentum or betas") {
  const std::string reason = "optimizer must support momentum or beta1 with `cycle_momentum`";
  const std::string sharded = "{ZeroRedundancyOptimizer: {optimizer_class: Adam, lr: 0.1}}";
  refuses_scheduler("{OneCycleLR: {max_lr: 0.1, total_steps: 9}}", reason, sharded);
  CHECK(stops_with("{OneCycleLR: {max_lr: 0.1, total_steps: 9, cycle_momentum: false}}", sharded)
            .empty());
  CHECK(
      stops_with("{OneCycleLR: {max_lr: 0.1, total_steps: 9}}",
                 "{ZeroRedundancyOptimizer: {optimizer_class: Adam, lr: 0.1, betas: [0.9, 0.99]}}")
          .empty());
}

TEST_CASE("schedulers that hold others refuse what torch refuses") {
  refuses_scheduler("{SequentialLR: {schedulers: [], milestones: []}}",
                    "SequentialLR expects at least one scheduler, but got no scheduler.");
  refuses_scheduler("{ChainedScheduler: {schedulers: []}}",
                    "ChainedScheduler expects at least one scheduler to be chained");
  refuses_scheduler("{SequentialLR: {schedulers: [ExponentialLR: {gamma: 0.5}], milestones: [3]}}",
                    "number of schedulers 1 and the number of milestones to be equal to 1");
  refuses_scheduler(
      "{ChainedScheduler: {schedulers: [ExponentialLR: {gamma: 0.5}, "
      "ReduceLROnPlateau: {monitor: val_loss}]}}",
      "but got one at index 1 in the given schedulers sequence");
  refuses_scheduler(
      "{ChainedScheduler: {schedulers: [ExponentialLR: {gamma: 0.5, interval: step}]}}",
      "`interval` says how Lightning steps a scheduler, and it steps ChainedScheduler");
  refuses_scheduler(
      "{ChainedScheduler: {schedulers: [LinearLR: {start_factor: 1.5, total_iters: 3}]}}",
      "LinearLR: the first factor is at most 1");
}

TEST_CASE("a factor is an expression of epoch and pi") {
  refuses_scheduler("{LambdaLR: {lr_lambda: 1 / epoch}}", "division by zero");
  CHECK(load_error_of("{LambdaLR: {lr_lambda: rank + 1}}") == "`rank` is not defined here");
  CHECK(load_error_of("{LambdaLR: {lr_lambda: sine(epoch)}}") == "there is no function `sine`");
  CHECK(load_error_of("{MultiplicativeLR: {lr_lambda: \"lambda epoch: 0.95\"}}") ==
        "`lr_lambda` is an expression, without `lambda`");
  CHECK(load_error_of("{LambdaLR: {lr_lambda: [1, 2]}}") ==
        "ValueError: Expected 1 lr_lambdas, but got 2");
  CHECK(load_error_of("{ChainedScheduler: {schedulers: [LambdaLR: {lr_lambda: rank}]}}") ==
        "`rank` is not defined here");
}

}  // namespace refused_schedulers_test
