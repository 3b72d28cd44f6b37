// Conv2d and pooling.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/core/random.hpp"
#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/convolution.hpp"
#include "model/network/arithmetic/pooling.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace image_layers_test {

namespace {

Values whole(int64_t elements, uint64_t key) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, static_cast<double>(random_below(key, static_cast<uint64_t>(i), 9)) - 4);
  }
  return values;
}

ConvolutionShape convolution(const Conv2dArguments& arguments, int64_t batch, Pair input,
                             Pair output) {
  return {arguments, batch, input, output};
}

}  // namespace

TEST_CASE("a convolution correlates the kernel with each window") {
  // 3 x 3 image, 2 x 2 kernel: by hand.
  const Values input = fp32({1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Values weight = fp32({1, 0, 0, -1});
  const Values bias = fp32({100});
  Values output(DType::fp32, 4);
  conv2d_forward(
      input, weight, &bias,
      convolution({.in_channels = 1, .out_channels = 1, .kernel_size = {2, 2}}, 1, {3, 3}, {2, 2}),
      output);
  CHECK(output == fp32({96, 96, 96, 96}));  // x[i][j] - x[i+1][j+1] = -4
  // Padding of 1, stride 2: the corners, of which padding counts as 0.
  conv2d_forward(input, weight, nullptr,
                 convolution({.in_channels = 1,
                              .out_channels = 1,
                              .kernel_size = {2, 2},
                              .stride = {2, 2},
                              .padding = {1, 1}},
                             1, {3, 3}, {2, 2}),
                 output);
  CHECK(output == fp32({-1, -3, -7, 5 - 9}));
}

TEST_CASE("a grouped, strided, dilated and padded convolution has the exact slopes") {
  // The weighted sum of outputs is linear in each operand, so a step of 1 gives the exact slope.
  Conv2dArguments arguments{.in_channels = 4,
                            .out_channels = 6,
                            .kernel_size = {2, 3},
                            .stride = {2, 1},
                            .padding = {1, 2},
                            .dilation = {2, 2},
                            .groups = 2};
  // (5 + 2 - 2 - 1) / 2 + 1 = 3 rows and (4 + 4 - 4 - 1) / 1 + 1 = 4 columns.
  const ConvolutionShape shape = convolution(arguments, 2, {5, 4}, {3, 4});
  const Values input = whole(2 * 4 * 20, 1);
  const Values weight = whole(6 * 2 * 6, 2);
  const Values bias = whole(6, 3);
  const Values output_gradient = whole(2 * 6 * 12, 4);
  const auto loss = [&](const Values& x, const Values& w, const Values& b) {
    Values output(DType::fp64, output_gradient.size());
    conv2d_forward(x, w, &b, shape, output);
    return dot(output, output_gradient);
  };
  Values input_gradient(DType::fp64, input.size());
  Values weight_gradient(DType::fp64, weight.size());
  Values bias_gradient(DType::fp64, bias.size());
  conv2d_input_gradient(output_gradient, weight, shape, input_gradient);
  conv2d_weight_gradient(input, output_gradient, shape, weight_gradient);
  conv2d_bias_gradient(output_gradient, shape, bias_gradient);
  check_gradient(input, input_gradient, 1, 0,
                 [&](const Values& x) { return loss(x, weight, bias); });
  check_gradient(weight, weight_gradient, 1, 0,
                 [&](const Values& w) { return loss(input, w, bias); });
  check_gradient(bias, bias_gradient, 1, 0,
                 [&](const Values& b) { return loss(input, weight, b); });
}

TEST_CASE("max pooling takes the greatest of a window, the first of equals, and NaN") {
  const PoolingShape shape{Pooling::greatest, {{2, 2}, {2, 2}, {0, 0}}, 1, {2, 4}, {1, 2}};
  Values output(DType::fp32, 2);
  pool2d_forward(fp32({1, 5, -3, -2, 5, 0, -1, -1}), shape, output);
  CHECK(output == fp32({5, -1}));
  Values gradient(DType::fp32, 8);
  pool2d_input_gradient(fp32({1, 5, -3, -2, 5, 0, -1, -1}), fp32({10, 20}), shape, gradient);
  CHECK(gradient == fp32({0, 10, 0, 0, 0, 0, 20, 0}));
  pool2d_forward(fp32({1, NAN, 0, 0, 5, 0, 0, 0}), shape, output);
  CHECK(std::isnan(output.number(0)));
}

TEST_CASE("average pooling counts padding as zeros; overlapping windows add their gradients") {
  // 1 x 3, windows of 1 x 3 with a padding of 1 column: sums 0+1+2, 1+2+3, 2+3+0.
  const PoolingShape shape{Pooling::average, {{1, 3}, {1, 1}, {0, 1}}, 1, {1, 3}, {1, 3}};
  Values output(DType::fp32, 3);
  pool2d_forward(fp32({3, 6, 9}), shape, output);
  CHECK(output == fp32({3, 6, 5}));
  Values gradient(DType::fp32, 3);
  pool2d_input_gradient(fp32({3, 6, 9}), fp32({3, 3, 3}), shape, gradient);
  CHECK(gradient == fp32({2, 3, 2}));
}

TEST_CASE("adaptive pooling divides the image into parts that may overlap") {
  // 5 columns to 2: columns 0-2 and 2-4 (floor(i 5 / 2) .. ceil((i + 1) 5 / 2)).
  const PoolingShape shape{Pooling::adaptive_average, {}, 1, {1, 5}, {1, 2}};
  Values output(DType::fp32, 2);
  pool2d_forward(fp32({0, 3, 6, 9, 12}), shape, output);
  CHECK(output == fp32({3, 9}));
  Values gradient(DType::fp32, 5);
  pool2d_input_gradient(fp32({0, 3, 6, 9, 12}), fp32({3, 6}), shape, gradient);
  CHECK(gradient == fp32({1, 1, 3, 2, 2}));
}

TEST_CASE("a padding of more than half a kernel is refused, as by torch") {
  const PoolingShape shape{Pooling::greatest, {{1, 2}, {1, 1}, {0, 2}}, 1, {1, 3}, {1, 6}};
  Values output(DType::fp32, 6);
  CHECK_THROWS_AS(pool2d_forward(fp32({1, 2, 3}), shape, output), ArithmeticError);
}

}  // namespace image_layers_test
