#include "model/network/arithmetic/gradient_clipping.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace lockstep;

namespace gradient_clipping_test {

namespace {
Values fp32(std::initializer_list<double> numbers) { return Values::of(DType::fp32, numbers); }
Values fp64(std::initializer_list<double> numbers) { return Values::of(DType::fp64, numbers); }
}  // namespace

TEST_CASE("the norm is that of all gradients together") {
  const std::vector<Values> gradients{fp32({1, -2}), fp32({}), fp32({2, 4})};
  CHECK(squared_norm(gradients, DType::fp32) == fp32({25}));
}

TEST_CASE("gradients above the norm are scaled to it, but for the 1e-6 of clip_grad_norm_") {
  Values gradient = fp64({6, -8});
  clip_by_norm(5, fp64({100}), gradient);
  CHECK(gradient.number(0) == Approx(6 * 5 / 10.000001).epsilon(1e-15));
  CHECK(gradient.number(1) == Approx(-8 * 5 / 10.000001).epsilon(1e-15));
}

TEST_CASE("gradients below the norm stay as they are") {
  Values gradient = fp32({3, 4});
  clip_by_norm(5.5, fp32({25}), gradient);
  CHECK(gradient == fp32({3, 4}));
}

TEST_CASE("a norm that is exactly the limit still loses a bit to the 1e-6") {
  Values gradient = fp32({3});
  clip_by_norm(1, fp32({1}), gradient);
  CHECK(gradient.number(0) < 3);
  CHECK(gradient.number(0) == Approx(3 / 1.000001).epsilon(1e-6));
}

TEST_CASE("an infinite norm empties what is finite, as torch's does") {
  Values gradient = fp32({3, std::numeric_limits<double>::infinity()});
  clip_by_norm(1, fp32({std::numeric_limits<double>::infinity()}), gradient);
  CHECK(gradient.number(0) == 0);
  CHECK(std::isnan(gradient.number(1)));
}

TEST_CASE("clipping by value cuts every element for itself") {
  Values gradient = fp32({-3, -0.5, 0.5, 3, std::numeric_limits<double>::quiet_NaN()});
  clip_by_value(2, gradient);
  CHECK(gradient.slice(0, 4) == fp32({-2, -0.5, 0.5, 2}));
  CHECK(std::isnan(gradient.number(4)));
}

TEST_CASE("a gradient is finite where none of its elements is infinite or NaN") {
  CHECK(all_finite(fp32({0, -3, 3.4e38})));
  CHECK(all_finite(fp32({})));
  CHECK_FALSE(all_finite(fp32({1, -std::numeric_limits<double>::infinity()})));
  CHECK_FALSE(all_finite(fp32({std::numeric_limits<double>::quiet_NaN(), 1})));
  Values half = Values::of(DType::fp16, {65504, 65536});  // beyond its largest number
  CHECK_FALSE(all_finite(half));
}

}  // namespace gradient_clipping_test
