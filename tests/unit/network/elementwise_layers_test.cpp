// Activations, softmax, norms over groups and rows, and transposed convolutions.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/core/random.hpp"
#include "model/network/arithmetic/convolution.hpp"
#include "model/network/arithmetic/group_norm.hpp"
#include "model/network/arithmetic/pointwise.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace elementwise_layers_test {

namespace {

constexpr double step = 1e-4;
constexpr double tolerance = 1e-6;

Values reals(int64_t elements, uint64_t key) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, 2 * random_unit(key, static_cast<uint64_t>(i)) - 1);
  }
  return values;
}

void check_near(const Values& values, std::initializer_list<double> expected) {
  REQUIRE(values.size() == static_cast<int64_t>(expected.size()));
  int64_t i = 0;
  for (const double number : expected) {
    CHECK(values.number(i++) == Approx(number).margin(1e-12));
  }
}

Values forward_of(Pointwise function, const Values& input, double slope = 0) {
  Values output(input.dtype(), input.size());
  pointwise_forward(input, function, slope, output);
  return output;
}

}  // namespace

TEST_CASE("activations follow the formulas of torch.nn") {
  // sigmoid(log 3) = 3 / (3 + 1); tanh(log 2) = (4 - 1) / (4 + 1).
  check_near(forward_of(Pointwise::sigmoid, fp64({0, std::log(3), -std::log(3)})),
             {0.5, 0.75, 0.25});
  check_near(forward_of(Pointwise::tanh, fp64({0, std::log(2), -std::log(2)})), {0, 0.6, -0.6});
  check_near(forward_of(Pointwise::silu, fp64({0, std::log(3)})), {0, 0.75 * std::log(3)});
  check_near(forward_of(Pointwise::leaky_relu, fp64({-5, 0, 5}), 0.2), {-1, 0, 5});
}

TEST_CASE("gradients of activations are slopes") {
  const Values input = reals(6, 1);
  const Values output_gradient = reals(6, 2);
  for (const Pointwise function :
       {Pointwise::leaky_relu, Pointwise::silu, Pointwise::sigmoid, Pointwise::tanh}) {
    INFO(static_cast<int>(function));
    Values gradient(DType::fp64, 6);
    pointwise_backward(input, output_gradient, function, 0.2, gradient);
    check_gradient(input, gradient, step, tolerance, [&](const Values& x) {
      return dot(forward_of(function, x, 0.2), output_gradient);
    });
  }
}

TEST_CASE("softmax runs along its dimension and does not overflow") {
  Values rows(DType::fp64, 4);
  softmax_forward(fp64({1000, 1000 + std::log(3), 0, 0}), {2, 1}, rows);
  check_near(rows, {0.25, 0.75, 0.5, 0.5});
  // [[0, 1000], [log 3, 1000]] down its columns.
  Values columns(DType::fp64, 4);
  softmax_forward(fp64({0, 1000, std::log(3), 1000}), {2, 2}, columns);
  check_near(columns, {0.25, 0.5, 0.75, 0.5});
}

TEST_CASE("the gradient of softmax is its slope") {
  const Values input = reals(12, 3);
  const Values output_gradient = reals(12, 4);
  for (const SoftmaxShape& shape : {SoftmaxShape{3, 1}, SoftmaxShape{3, 2}}) {
    Values gradient(DType::fp64, 12);
    softmax_backward(input, output_gradient, shape, gradient);
    check_gradient(input, gradient, step, tolerance, [&](const Values& x) {
      Values output(DType::fp64, 12);
      softmax_forward(x, shape, output);
      return dot(output, output_gradient);
    });
  }
}

TEST_CASE("group norm normalises each group of channels of each sample") {
  // One sample, channels of two positions: group 0 is 0 2 4 6 (mean 3, variance 5), group 1 is
  // flat.
  const GroupNormShape shape{1, 2, 4, 2, 0};
  const Values weight = fp64({1, 2, 1, 1});
  const Values bias = fp64({0, 10, 0, 7});
  Values output(DType::fp64, 8);
  group_norm_forward(fp64({0, 2, 4, 6, 1, 1, 1, 1}), &weight, &bias, {1, 2, 4, 2, 1e-5}, output);
  const double unit = 1 / std::sqrt(5 + 1e-5);
  check_near(output, {-3 * unit, -unit, 10 + 2 * unit, 10 + 6 * unit, 0, 0, 7, 7});
  CHECK(shape.channels / shape.groups == 2);
}

TEST_CASE("gradients of group norm are slopes") {
  const GroupNormShape shape{2, 2, 4, 3, 1e-5};
  const Values input = reals(24, 1);
  const Values weight = reals(4, 2);
  const Values bias = reals(4, 3);
  const Values output_gradient = reals(24, 4);
  const auto loss = [&](const Values& x, const Values& w, const Values& b) {
    Values output(DType::fp64, 24);
    group_norm_forward(x, &w, &b, shape, output);
    return dot(output, output_gradient);
  };
  Values input_gradient(DType::fp64, 24);
  Values weight_gradient(DType::fp64, 4);
  Values bias_gradient(DType::fp64, 4);
  group_norm_input_gradient(input, output_gradient, &weight, shape, input_gradient);
  group_norm_weight_gradients(input, output_gradient, shape, weight_gradient, bias_gradient);
  check_gradient(input, input_gradient, step, tolerance,
                 [&](const Values& x) { return loss(x, weight, bias); });
  check_gradient(weight, weight_gradient, step, tolerance,
                 [&](const Values& w) { return loss(input, w, bias); });
  check_gradient(bias, bias_gradient, step, tolerance,
                 [&](const Values& b) { return loss(input, weight, b); });
}

TEST_CASE("RMS norm divides each row by its root mean square") {
  // Root mean square of 1 7 is 5.
  Values output(DType::fp64, 4);
  const Values weight = fp64({10, 20});
  rms_norm_forward(fp64({1, 7, 0, 0}), &weight, {2, 2, 0x1p-60}, output);
  check_near(output, {2, 28, 0, 0});
}

TEST_CASE("gradients of RMS norm are slopes") {
  const RmsNormShape shape{2, 3, 1e-3};
  const Values input = reals(6, 1);
  const Values weight = reals(3, 2);
  const Values output_gradient = reals(6, 3);
  const auto loss = [&](const Values& x, const Values& w) {
    Values output(DType::fp64, 6);
    rms_norm_forward(x, &w, shape, output);
    return dot(output, output_gradient);
  };
  Values input_gradient(DType::fp64, 6);
  Values weight_gradient(DType::fp64, 3);
  rms_norm_input_gradient(input, output_gradient, &weight, shape, input_gradient);
  rms_norm_weight_gradient(input, output_gradient, shape, weight_gradient);
  check_gradient(input, input_gradient, step, tolerance,
                 [&](const Values& x) { return loss(x, weight); });
  check_gradient(weight, weight_gradient, step, tolerance,
                 [&](const Values& w) { return loss(input, w); });
}

TEST_CASE("a transposed convolution spreads each input over its window") {
  // One channel, input [1 2], kernel [1 10], stride 1: 1 (10 + 2) 20, and 3 is added everywhere.
  ConvolutionShape mirrored;
  mirrored.arguments = {.in_channels = 1, .out_channels = 1, .kernel_size = {1, 2}};
  mirrored.input = {1, 3};
  mirrored.output = {1, 2};
  Values output(DType::fp64, 3);
  const Values bias = fp64({3});
  conv_transpose2d_forward(fp64({1, 2}), fp64({1, 10}), &bias, mirrored, output);
  CHECK(output == fp64({4, 15, 23}));
}

}  // namespace elementwise_layers_test
