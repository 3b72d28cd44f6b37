// What the sensitivity of every optimizer promises, for any history of gradients and errors.
#include <fmt/core.h>
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/network/execute_update.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace update_sensitivity_test {

namespace {

struct Trained {
  Values parameter;
  std::vector<Values> state;
};

Trained begun(const OptimizerSettings& settings, const Values& parameter, const Shape& shape) {
  Trained trained{parameter, {}};
  for (const OptimizerState& state : rule_of(settings.kind).state(settings, shape)) {
    Values& made = trained.state.emplace_back(DType::fp64, state.elements);
    for (int64_t i = 0; i < state.elements; ++i) {
      made.set(i, state.initial);
    }
  }
  return trained;
}

double part_between(int from, int to) { return *rc::gen::inRange(from, to) / 1000.0; }

OptimizerSettings drawn_settings(OptimizerKind kind) {
  OptimizerSettings settings = rule_of(kind).defaults();
  settings.lr = 0.01;
  settings.beta1 = part_between(0, 990);
  settings.beta2 = part_between(900, 1000);
  settings.forgetting = part_between(500, 1000);
  settings.momentum = *rc::gen::element(0.0, 0.5, 0.9);
  settings.centered = *rc::gen::arbitrary<bool>();
  settings.lr_decay = part_between(0, 100);
  settings.eps = *rc::gen::element(1e-8, 1e-3);
  return settings;
}

void check_sensitivity_of(OptimizerKind kind) {
  const OptimizerSettings settings = drawn_settings(kind);
  const OptimizerRule& rule = rule_of(kind);
  const int64_t steps = *rc::gen::inRange(1, 12);
  const double error = std::pow(2.0, *rc::gen::inRange(-20, 1));
  constexpr int64_t size = 6;
  const bool is_matrix = *rc::gen::arbitrary<bool>();  // of which only Adafactor sees anything
  const Shape shape = is_matrix ? Shape{2, 3} : Shape{size};
  Values parameter(DType::fp64, size);
  for (int64_t i = 0; i < size; ++i) {
    parameter.set(i, part_between(-1000, 1001));
  }
  Trained right = begun(settings, parameter, shape);
  Trained wrong = right;
  UpdateSensitivity sensitivity;
  std::array<double, 2> kept{};
  for (int64_t step = 1; step <= steps; ++step) {
    const UpdateMoment moment{step, rule.advance(settings, step, kept)};
    const UpdateCall call = update_call_from(scalars_of(settings, moment, shape));
    Values gradient(DType::fp64, size);
    for (int64_t i = 0; i < size; ++i) {
      // Some elements are far below the largest: of them the error decides all.
      gradient.set(i, part_between(-1000, 1001) * std::pow(2.0, -5.0 * static_cast<double>(i)));
      sensitivity.largest_gradient =
          std::max(sensitivity.largest_gradient, std::abs(gradient.number(i)));
    }
    Values with_error = gradient;
    for (int64_t i = 0; i < size; ++i) {
      with_error.set(
          i, gradient.number(i) + part_between(-1000, 1001) * error * sensitivity.largest_gradient);
    }
    update_values(call, gradient, right.state, right.parameter, &sensitivity);
    update_values(call, with_error, wrong.state, wrong.parameter, nullptr);
  }
  for (int64_t i = 0; i < size; ++i) {
    const double apart = std::abs(right.parameter.number(i) - wrong.parameter.number(i));
    // Sums are in floats, and numbers of 1e-16 of the weights are rounding of the update itself.
    RC_ASSERT(apart <= sensitivity.distance(i, error) * (1 + 1e-5) + 1e-13);
  }
}

}  // namespace

TEST_CASE("no error of the gradients takes an optimizer further than its sensitivity says") {
  for (const OptimizerKind kind :
       {OptimizerKind::adagrad, OptimizerKind::adadelta, OptimizerKind::adamax,
        OptimizerKind::nadam, OptimizerKind::radam, OptimizerKind::rmsprop, OptimizerKind::rprop,
        OptimizerKind::lion, OptimizerKind::lamb, OptimizerKind::adafactor}) {
    const std::string name =
        fmt::format("no error of the gradients takes {} further than its sensitivity says",
                    rule_of(kind).name());
    CHECK(holds(name.c_str(), 300, [kind] { check_sensitivity_of(kind); }));
  }
}

}  // namespace update_sensitivity_test
