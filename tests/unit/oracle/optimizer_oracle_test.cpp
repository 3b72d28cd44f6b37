// Weights after each of 8 steps of every optimizer against those of torch 2.11 (docs/oracle.md).
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/strategy/local_model/optimizer.hpp"
#include "tests/unit/oracle/recorded_optimizer.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace optimizer_oracle_test {
using nlohmann::json;

namespace {

/// As a scenario gives it, so that arguments and defaults are compared as well.
OptimizerPlan plan_of(const json& setting) {
  const std::string text =
      "version: 1\ntrainer: {accelerator: cpu, devices: 1, max_epochs: 1}\noptimizer: " +
      setting["optimizer"].dump() + "\n";
  const Preparation preparation = prepare(scenario_of(text), standard_strategies());
  REQUIRE(preparation.runnable());
  return preparation.plan.optimizers.front();
}

void execute_reference(const Op& op, Operands& operands) { execute_kernel(op, operands, nullptr); }

// Weights stay below 2 and steps below 0.5. In each of 8 steps a weight is rounded to a unit, on
// both sides; what a step consists of is rounded relative to the step, some 10 times where it
// matters.
double bound_of(const json& setting) {
  return 64 * (setting["dtype"] == "fp32" ? 0x1p-24 : 0x1p-53);
}

}  // namespace

TEST_CASE("optimizers give the weights of torch") {
  const std::vector<json> settings = recorded_optimizers();
  CHECK(settings.size() >= 68);
  for (const json& setting : settings) {
    INFO(setting["optimizer"].dump() << " " << setting["dtype"]);
    const OptimizerPlan plan = plan_of(setting);
    const DType dtype = setting["dtype"] == "fp32" ? DType::fp32 : DType::fp64;
    const auto steps = std::ssize(setting["steps"]);
    for (const bool is_weight : {true, false}) {
      const std::vector<Values> ours = updated_by(plan, dtype, is_weight, steps, execute_reference);
      double apart = 0;
      for (int64_t step = 0; step < steps; ++step) {
        const json& theirs = setting["steps"][static_cast<size_t>(step)][is_weight ? 0 : 1];
        for (int64_t i = 0; i < std::ssize(theirs); ++i) {
          const double difference = ours[static_cast<size_t>(step)].number(i) -
                                    theirs[static_cast<size_t>(i)].get<double>();
          apart = std::max(apart, std::abs(difference));
        }
      }
      CHECK(apart <= bound_of(setting));
    }
  }
}

TEST_CASE("optimizers keep what torch's keep") {
  for (const json& setting : recorded_optimizers()) {
    INFO(setting["optimizer"].dump());
    const OptimizerPlan plan = plan_of(setting);
    const OptimizerRule& rule = rule_of(plan.kind);
    CHECK(state_elements(plan, {recorded_rows, recorded_columns}) == setting["state"][0]);
    CHECK(state_elements(plan, {recorded_rows}) == setting["state"][1]);
    CHECK(rule.counters() == setting["counters"]);
    CHECK(rule.group_entries() == setting["group"]);
    CHECK(rule.name() == setting["optimizer"].begin().key());
  }
}

}  // namespace optimizer_oracle_test
