// What the sensitivity of an optimizer step promises, for any history of gradients and errors.
#include <fmt/core.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/network/arithmetic/optimizer.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("no error of the gradients takes Adam further than its sensitivity says") {
  const char* const name = "no error of the gradients takes Adam further than its sensitivity says";
  const bool held = holds(name, 1000, [] {
    const auto part = [](int from, int to) { return *rc::gen::inRange(from, to) / 1000.0; };
    const AdamOptions options{.lr = 0.01,
                              .beta1 = part(0, 990),
                              .beta2 = part(900, 1000),
                              .eps = *rc::gen::element(1e-8, 1e-3),
                              .weight_decay = part(0, 100),
                              .decoupled_weight_decay = true};
    const int64_t steps = *rc::gen::inRange(1, 12);
    const double error = std::pow(2.0, *rc::gen::inRange(-20, 1));
    constexpr int64_t size = 6;
    std::array<Values, 6> tensors;  // parameter, first and second moment; the same with errors
    tensors.fill(Values(DType::fp64, size));
    UpdateSensitivity sensitivity;
    for (int64_t step = 1; step <= steps; ++step) {
      Values gradient(DType::fp64, size);
      double largest = 0;
      for (int64_t i = 0; i < size; ++i) {
        // Some elements are far below the largest: of them the error decides all.
        gradient.set(i, part(-1000, 1001) * std::pow(2.0, -5.0 * static_cast<double>(i)));
        largest = std::max(largest, std::abs(gradient.number(i)));
      }
      sensitivity.largest_gradient = std::max(sensitivity.largest_gradient, largest);
      Values wrong = gradient;
      for (int64_t i = 0; i < size; ++i) {
        wrong.set(i, gradient.number(i) + part(-1000, 1001) * error * sensitivity.largest_gradient);
      }
      adam_step(options, step, gradient, tensors[1], tensors[2], tensors[0]);
      adam_step(options, step, wrong, tensors[4], tensors[5], tensors[3]);
      add_adam_sensitivity(options, step, largest, tensors[2], sensitivity);
    }
    for (int64_t i = 0; i < size; ++i) {
      const double apart = std::abs(tensors[0].number(i) - tensors[3].number(i));
      RC_ASSERT(apart <= sensitivity.distance(i, error) * (1 + 1e-6));  // the sum is in floats
    }
  });
  CHECK(held);
}
