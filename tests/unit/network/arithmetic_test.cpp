#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "model/core/random.hpp"
#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/activation.hpp"
#include "model/network/arithmetic/batch_norm.hpp"
#include "model/network/arithmetic/embedding.hpp"
#include "model/network/arithmetic/linear.hpp"
#include "model/network/arithmetic/loss.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a linear layer multiplies by the transposed weight and adds the bias") {
  // [1 2 3; -1 0 2] times [1 0 2; -1 1 1]^T plus [10, 20]
  const Values input = fp32({1, 2, 3, -1, 0, 2});
  const Values weight = fp32({1, 0, 2, -1, 1, 1});
  const Values bias = fp32({10, 20});
  Values output(DType::fp32, 4);
  linear_forward(input, weight, &bias, 2, 3, 2, output);
  CHECK(output == fp32({17, 24, 13, 23}));
  linear_forward(input, weight, nullptr, 2, 3, 2, output);
  CHECK(output == fp32({7, 4, 3, 3}));
}

TEST_CASE("a linear layer's gradients are the exact slopes") {
  // The weighted sum of outputs is linear in each operand, so a step of 1 gives the exact slope.
  const Values input = fp64({1, 2, 3, -1, 0, 2});
  const Values weight = fp64({1, 0, 2, -1, 1, 1});
  const Values bias = fp64({10, 20});
  const Values output_gradient = fp64({1, -2, 3, 1});
  const auto loss = [&](const Values& x, const Values& w, const Values& b) {
    Values output(DType::fp64, 4);
    linear_forward(x, w, &b, 2, 3, 2, output);
    return dot(output, output_gradient);
  };
  Values input_gradient(DType::fp64, 6);
  Values weight_gradient(DType::fp64, 6);
  Values bias_gradient(DType::fp64, 2);
  linear_input_gradient(output_gradient, weight, 2, 3, 2, input_gradient);
  linear_weight_gradient(input, output_gradient, 2, 3, 2, weight_gradient);
  bias_weight_gradient(output_gradient, 2, 2, bias_gradient);
  check_gradient(input, input_gradient, 1, 0,
                 [&](const Values& x) { return loss(x, weight, bias); });
  check_gradient(weight, weight_gradient, 1, 0,
                 [&](const Values& w) { return loss(input, w, bias); });
  check_gradient(bias, bias_gradient, 1, 0,
                 [&](const Values& b) { return loss(input, weight, b); });
}

TEST_CASE("weight gradients accumulate, input gradients overwrite") {
  const Values one = fp32({1});
  const Values two = fp32({2});
  Values weight_gradient = fp32({5});
  linear_weight_gradient(two, one, 1, 1, 1, weight_gradient);
  linear_weight_gradient(two, one, 1, 1, 1, weight_gradient);
  CHECK(weight_gradient == fp32({9}));
  Values input_gradient = fp32({5});
  linear_input_gradient(one, two, 1, 1, 1, input_gradient);
  CHECK(input_gradient == fp32({2}));
}

TEST_CASE("fp32 sums run over increasing inputs and round at every step") {
  const Values ones = fp32({1, 1, 1});
  Values output(DType::fp32, 1);
  linear_forward(fp32({16777216, 1, 1}), ones, nullptr, 1, 3, 1, output);
  CHECK(output.number(0) == 16777216);  // 2^24 + 1 rounds to 2^24, twice
  linear_forward(fp32({1, 1, 16777216}), ones, nullptr, 1, 3, 1, output);
  CHECK(output.number(0) == 16777218);
}

TEST_CASE("16 bit results are summed in fp32 and rounded once") {
  const Values ones = Values::of(DType::bf16, {1, 1, 1});
  Values output(DType::bf16, 1);
  linear_forward(Values::of(DType::bf16, {256, 1, 1}), ones, nullptr, 1, 3, 1, output);
  CHECK(output == Values::of(DType::bf16, {258}));  // 256 + 1 in bf16 would stay 256
  Values half(DType::fp16, 1);
  linear_forward(Values::of(DType::fp16, {2048, 1, 1}), Values::of(DType::fp16, {1, 1, 1}), nullptr,
                 1, 3, 1, half);
  CHECK(half == Values::of(DType::fp16, {2050}));
}

TEST_CASE("a 16-bit gradient rounds at every accumulation") {
  Values gradient = Values::of(DType::bf16, {256});
  const Values one = Values::of(DType::bf16, {1});
  linear_weight_gradient(one, one, 1, 1, 1, gradient);
  CHECK(gradient.number(0) == 256);
}

TEST_CASE("a bias is added to every row and its gradient sums the rows") {
  Values output(DType::fp32, 4);
  bias_forward(fp32({1, 2, 3, 4}), fp32({10, 20}), {2, 2, 1}, output);
  CHECK(output == fp32({11, 22, 13, 24}));
  Values gradient = fp32({100, 100});
  bias_weight_gradient(fp32({1, 2, 3, 4}), 2, 2, gradient);
  CHECK(gradient == fp32({104, 106}));
}

TEST_CASE("of so many ranks each adds its share of a bias") {
  Values output(DType::fp32, 4);
  bias_forward(fp32({1, 2, 3, 4}), fp32({10, 20}), {2, 2, 4}, output);
  CHECK(output == fp32({3.5, 7, 5.5, 9}));
}

TEST_CASE("relu cuts below zero, has slope 0 at zero and lets NaN through") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Values output(DType::fp32, 4);
  relu_forward(fp32({-1, 0, 2, nan}), output);
  CHECK(output.slice(0, 3) == fp32({0, 0, 2}));
  CHECK(std::isnan(output.number(3)));
  Values gradient(DType::fp32, 3);
  relu_backward(output.slice(0, 3), fp32({5, 6, 7}), gradient);
  CHECK(gradient == fp32({0, 0, 7}));
}

TEST_CASE("an embedding copies rows and sums the gradients of a repeated index") {
  const Values weight = fp32({1, 2, 3, 4, 5, 6});
  Values output(DType::fp32, 6);
  embedding_forward(int64({2, 0, 2}), weight, {3, 2}, output);
  CHECK(output == fp32({5, 6, 1, 2, 5, 6}));
  Values gradient(DType::fp32, 6);
  embedding_weight_gradient(int64({2, 0, 2}), fp32({1, 2, 3, 4, 5, 6}), {3, 2}, gradient);
  CHECK(gradient == fp32({3, 4, 0, 0, 6, 8}));
  CHECK_THROWS_AS(embedding_forward(int64({3}), weight, {3, 2}, output = Values(DType::fp32, 2)),
                  ArithmeticError);
}

TEST_CASE("a part of an embedding gives 0 for rows that another part has") {
  const Values weight = fp32({5, 6, 7, 8});  // rows 2 and 3
  Values output(DType::fp32, 6);
  embedding_forward(int64({3, 0, 2}), weight, {2, 2, 2}, output);
  CHECK(output == fp32({7, 8, 0, 0, 5, 6}));
  Values gradient(DType::fp32, 4);
  embedding_weight_gradient(int64({3, 0, 2}), fp32({1, 2, 3, 4, 5, 6}), {2, 2, 2}, gradient);
  CHECK(gradient == fp32({5, 6, 1, 2}));
}

TEST_CASE("batch statistics are per channel, running variance is unbiased") {
  // [batch 2, channels 2, spatial 1]: channel 0 holds 1 and 3, channel 1 holds 10 and 30.
  const Values input = fp32({1, 10, 3, 30});
  const BatchNormShape shape{.batch = 2, .channels = 2};
  Values mean(DType::fp32, 2);
  Values variance(DType::fp32, 2);
  batch_norm_statistics(input, shape, mean, variance);
  CHECK(mean == fp32({2, 20}));
  CHECK(variance == fp32({1, 100}));
  Values running_mean = fp32({0, 0});
  Values running_variance = fp32({1, 1});
  Values tracked = int64({4});
  batch_norm_update_running(mean, variance, 2, 0.5, running_mean, running_variance, tracked);
  CHECK(running_mean == fp32({1, 10}));
  CHECK(running_variance == fp32({1.5, 100.5}));  // unbiased: 1 * 2 / 1 and 100 * 2 / 1
  CHECK(tracked.integer(0) == 5);
  Values output(DType::fp32, 4);
  const Values weight = fp32({4, 1});
  const Values bias = fp32({100, 0});
  batch_norm_normalise(input, mean, variance, &weight, &bias, shape, 0, output);
  CHECK(output == fp32({96, -1, 104, 1}));
}

TEST_CASE("one value per channel cannot be normalised over") {
  Values mean(DType::fp32, 1);
  Values variance(DType::fp32, 1);
  CHECK_THROWS_AS(batch_norm_statistics(fp32({1}), {.batch = 1, .channels = 1}, mean, variance),
                  ArithmeticError);
}

TEST_CASE("batch norm's gradients are the slopes") {
  const BatchNormShape shape{.batch = 3, .channels = 2, .spatial = 2};
  Values input(DType::fp64, 12);
  Values output_gradient(DType::fp64, 12);
  for (int64_t i = 0; i < 12; ++i) {
    input.set(i, 4 * random_unit(1, static_cast<uint64_t>(i)));
    output_gradient.set(i, random_unit(2, static_cast<uint64_t>(i)) - 0.3);
  }
  const Values weight = fp64({1.5, -0.5});
  const Values bias = fp64({0.25, 2});
  Values mean(DType::fp64, 2);
  Values variance(DType::fp64, 2);
  const auto loss = [&](const Values& x, const Values& w, const Values& b) {
    Values m(DType::fp64, 2);
    Values v(DType::fp64, 2);
    Values output(DType::fp64, 12);
    batch_norm_statistics(x, shape, m, v);
    batch_norm_normalise(x, m, v, &w, &b, shape, 1e-5, output);
    return dot(output, output_gradient);
  };
  batch_norm_statistics(input, shape, mean, variance);
  Values bias_gradient(DType::fp64, 2);
  Values weight_gradient(DType::fp64, 2);
  Values input_gradient(DType::fp64, 12);
  batch_norm_gradient_sums(input, output_gradient, mean, variance, shape, 1e-5, bias_gradient,
                           weight_gradient);
  batch_norm_input_gradient(input, output_gradient, mean, variance, &weight, bias_gradient,
                            weight_gradient, shape.values_per_channel(), shape, 1e-5,
                            input_gradient);
  // Central differences with a step h err by O(h^2) and by rounding over h: 1e-8 covers both.
  check_gradient(input, input_gradient, 1e-5, 1e-8,
                 [&](const Values& x) { return loss(x, weight, bias); });
  check_gradient(weight, weight_gradient, 1e-5, 1e-8,
                 [&](const Values& w) { return loss(input, w, bias); });
  check_gradient(bias, bias_gradient, 1e-5, 1e-8,
                 [&](const Values& b) { return loss(input, weight, b); });
}

TEST_CASE("batch norm in evaluation treats statistics as constants") {
  Values gradient(DType::fp32, 2);
  const Values weight = fp32({6});
  batch_norm_input_gradient_of_evaluation(fp32({1, -2}), fp32({4}), &weight,
                                          {.batch = 2, .channels = 1}, 0, gradient);
  CHECK(gradient == fp32({3, -6}));
}

TEST_CASE("the squared error and its gradient by hand") {
  const Values input = fp32({1, 5, -2, 0});
  const Values target = fp32({3, 5, 0, 4});
  Values loss(DType::fp32, 1);
  mse_forward(input, target, LossReduction::mean, loss);
  CHECK(loss.number(0) == 6);  // (4 + 0 + 4 + 16) / 4
  mse_forward(input, target, LossReduction::sum, loss);
  CHECK(loss.number(0) == 24);
  Values gradient(DType::fp32, 4);
  mse_backward(input, target, LossReduction::mean, 1, gradient);
  CHECK(gradient == fp32({-1, 0, -1, -2}));
  mse_backward(input, target, LossReduction::sum, 0.5, gradient);
  CHECK(gradient == fp32({-2, 0, -2, -4}));
}

TEST_CASE("equal scores cost the logarithm of the number of classes") {
  Values loss(DType::fp64, 1);
  cross_entropy_forward(fp64({7, 7, 7, 7}), int64({2}), 4, LossReduction::mean, loss);
  CHECK(loss.number(0) == Approx(std::log(4.0)).epsilon(1e-15));
  Values gradient(DType::fp64, 4);
  cross_entropy_backward(fp64({7, 7, 7, 7}), int64({2}), 4, LossReduction::mean, 1, gradient);
  CHECK(gradient == fp64({0.25, 0.25, -0.75, 0.25}));
}

TEST_CASE("cross entropy's gradient is its slope, ignored rows count nowhere") {
  const Values scores = fp64({1, 2, -1, 5, 5, 5, 0, 0.5, 3});
  const Values targets = int64({0, ignored_target, 2});
  const auto loss_at = [&](const Values& x) {
    Values loss(DType::fp64, 1);
    cross_entropy_forward(x, targets, 3, LossReduction::mean, loss);
    return loss.number(0);
  };
  Values gradient(DType::fp64, 9);
  cross_entropy_backward(scores, targets, 3, LossReduction::mean, 1, gradient);
  check_gradient(scores, gradient, 1e-5, 1e-9, loss_at);
  CHECK(gradient.slice(3, 3) == fp64({0, 0, 0}));
  Values kept(DType::fp64, 1);
  cross_entropy_forward(fp64({1, 2, -1, 0, 0.5, 3}), int64({0, 2}), 3, LossReduction::mean, kept);
  CHECK(loss_at(scores) == kept.number(0));
}

TEST_CASE("great scores do not overflow and a target that is no class is refused") {
  Values loss(DType::fp32, 1);
  cross_entropy_forward(fp32({1000, 0}), int64({1}), 2, LossReduction::mean, loss);
  CHECK(loss.number(0) == 1000);
  CHECK_THROWS_AS(cross_entropy_forward(fp32({1, 0}), int64({2}), 2, LossReduction::mean, loss),
                  ArithmeticError);
}
