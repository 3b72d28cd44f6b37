// Layers of mobile and windowed networks: shapes, memory, and reference arithmetic.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/network/arithmetic/broadcast.hpp"
#include "model/network/arithmetic/placing.hpp"
#include "model/network/arithmetic/pointwise.hpp"
#include "model/network/arithmetic/window_attention.hpp"
#include "model/network/build.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace scaling_layers_test {

namespace {

LayerDescription scaling(std::string kind, std::vector<NamedArgument> arguments = {},
                         std::vector<LayerDescription> layers = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments), .layers = std::move(layers)};
}

BuildResult scaled(Shape input, std::vector<LayerDescription> layers) {
  return build_network(
      {.input = std::move(input), .layers = std::move(layers), .loss = {.kind = "MSELoss"}});
}

Values sequence(int64_t elements, double step) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, std::sin(step * static_cast<double>(i + 1)));
  }
  return values;
}

}  // namespace

TEST_CASE("bounded activations have the values and slopes of their formulas") {
  const Values x = fp64({-4, -1.5, 0.75, 3.5, 6.5});
  const Values ones = fp64({1, 1, 1, 1, 1});
  Values y(DType::fp64, 5);
  Values slope(DType::fp64, 5);
  pointwise_forward(x, Pointwise::relu6, 0, y);
  CHECK(y == fp64({0, 0, 0.75, 3.5, 6}));
  pointwise_backward(x, ones, Pointwise::relu6, 0, slope);
  CHECK(slope == fp64({0, 0, 1, 1, 0}));
  pointwise_forward(x, Pointwise::hardsigmoid, 0, y);
  CHECK(y == fp64({0, 0.25, 0.625, 1, 1}));
  pointwise_forward(x, Pointwise::hardswish, 0, y);
  CHECK(y == fp64({-0.0, -0.375, 0.46875, 3.5, 6.5}));
  for (const Pointwise function : {Pointwise::hardsigmoid, Pointwise::hardswish}) {
    pointwise_backward(x, ones, function, 0, slope);
    check_gradient(x, slope, 1e-6, 1e-8, [&](const Values& point) {
      Values at(DType::fp64, 5);
      pointwise_forward(point, function, 0, at);
      return dot(at, ones);
    });
  }
}

TEST_CASE("a factor multiplies what it is broadcast to, and its gradient sums over that") {
  // Two samples of [2, 3]; a factor for each row of each sample.
  const BroadcastShape shape{2, {2, 3}, {2, 1}, true};
  const Values whole = fp64({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const Values factor = fp64({1, 10, 100, 1000});
  Values product(DType::fp64, 12);
  multiply_forward(whole, factor, shape, product);
  CHECK(product == fp64({1, 2, 3, 40, 50, 60, 700, 800, 900, 10000, 11000, 12000}));
  const Values ones = fp64({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(factor_gradient(whole, ones, shape, DType::fp64) == fp64({6, 15, 24, 33}));
  // One factor for both samples.
  const BroadcastShape shared{2, {2, 3}, {1, 3}, false};
  CHECK(factor_gradient(whole, ones, shared, DType::fp64) == fp64({22, 26, 30}));
}

TEST_CASE("dimensions trade places and squares of pixels become channels") {
  Values to(DType::fp32, 6);
  permute_forward(fp32({1, 2, 3, 4, 5, 6}), {2, 3}, {1, 0}, to);
  CHECK(to == fp32({1, 4, 2, 5, 3, 6}));
  Values back(DType::fp32, 6);
  permute_backward(to, {2, 3}, {1, 0}, back);
  CHECK(back == fp32({1, 2, 3, 4, 5, 6}));
  // 3 x 2 pixels of one channel, a row of zeros below: above left, below left, above right, ..
  Values merged(DType::fp32, 8);
  merge_patches(fp32({1, 2, 3, 4, 5, 6}), {3, 2, 1}, merged);
  CHECK(merged == fp32({1, 3, 2, 4, 5, 0, 6, 0}));
  part_patches(merged, {3, 2, 1}, back);
  CHECK(back == fp32({1, 2, 3, 4, 5, 6}));
}

TEST_CASE("a Multiply keeps both factors, and its gradient meets the skip connection") {
  // Squeeze-and-excitation: [4, 3, 3] times [4, 1, 1].
  const auto excitation = scaling(
      "Multiply", {}, {scaling("AdaptiveAvgPool2d", {{"", int64_t{1}}}), scaling("Sigmoid")});
  const BuildResult built = scaled(
      {4, 3, 3},
      {scaling("Conv2d", {{"", int64_t{4}}, {"", int64_t{4}}, {"", int64_t{1}}}), excitation});
  REQUIRE(built.ok());
  const Layer& end = built.network.layers.back();
  CHECK(end.kind == LayerKind::residual_multiply);
  CHECK(end.output == Shape{4, 3, 3});
  // Kept: the convolution's output (36), the sigmoid's (4), and the product for the loss (36).
  Bytes kept{};
  for (const Layer& layer : built.network.layers) {
    kept += layer.activation_bytes(DType::fp32);
  }
  CHECK(kept == 4_B * (36 + 4 + 36));
  const BuildResult apart = scaled({4, 3, 3}, {scaling("Multiply", {}, {scaling("Flatten")})});
  REQUIRE(apart.errors.size() == 1);
  CHECK(apart.errors.front().message == "[4, 3, 3] cannot be multiplied by [36]");
}

TEST_CASE("new layers refuse what they cannot compute") {
  CHECK(scaled({2, 3}, {scaling("Permute", {{"dims", std::vector<int64_t>{0, 2, 2}}})})
            .errors.front()
            .message == "dims [0, 2, 2] are no order of the dimensions of a batch of [2, 3]");
  CHECK(scaled({2, 3}, {scaling("LayerScale", {{"shape", std::vector<int64_t>{2}}})})
            .errors.front()
            .message == "a scale of shape [2] does not fit the input [2, 3]");
  CHECK(scaled({4, 4, 6}, {scaling("WindowAttention", {{"dim", int64_t{6}},
                                                       {"window_size", int64_t{2}},
                                                       {"num_heads", int64_t{4}}})})
            .errors.front()
            .message == "4 heads do not divide dim 6");
  CHECK(scaled({4, 4, 6}, {scaling("WindowAttention", {{"dim", int64_t{6}},
                                                       {"window_size", int64_t{2}},
                                                       {"shift_size", int64_t{2}},
                                                       {"num_heads", int64_t{2}}})})
            .errors.front()
            .message == "shift_size 2 of windows of 2");
  CHECK(scaled({4}, {scaling("StochasticDepth", {{"p", 1.5}})}).errors.size() == 1);
  CHECK(scaled({4}, {scaling("StochasticDepth", {{"mode", std::string("all")}})}).errors.size() ==
        1);
}

TEST_CASE("attention in shifted windows has the gradients of central differences") {
  // 3 x 5 pixels become 4 x 6: six windows, turned by one pixel each way, two heads of two.
  const WindowShape shape = window_shape(
      {.dim = 4, .num_heads = 2, .window_size = {2, 2}, .shift_size = {1, 1}}, {3, 5, 4});
  CHECK(shape.windows() == 6);
  constexpr int64_t samples = 2;
  const Values input = sequence(samples * 15 * 4, 0.37);
  const Values qkv = sequence(12 * 4, 0.51);
  const Values qkv_bias = sequence(12, 0.9);
  const Values projection = sequence(16, 0.23);
  const Values projection_bias = sequence(4, 0.61);
  const Values table = sequence(9 * 2, 0.77);
  const Values factor = sequence(input.size(), 0.13);
  const WindowAttentionWeights weights{&qkv, &qkv_bias, &projection, &projection_bias, &table};
  const auto loss = [&](const Values& x, const WindowAttentionWeights& of) {
    Values output(DType::fp64, x.size());
    window_attention_forward(x, of, samples, shape, output);
    return dot(output, factor);
  };
  Values input_gradient(DType::fp64, input.size());
  Values gradients[] = {Values(DType::fp64, qkv.size()), Values(DType::fp64, qkv_bias.size()),
                        Values(DType::fp64, projection.size()),
                        Values(DType::fp64, projection_bias.size()),
                        Values(DType::fp64, table.size())};
  window_attention_backward(
      input, weights, factor, samples, shape, &input_gradient,
      {gradients, gradients + 1, gradients + 2, gradients + 3, gradients + 4});
  constexpr double step = 1e-5;
  constexpr double tolerance = 1e-8;
  check_gradient(input, input_gradient, step, tolerance,
                 [&](const Values& x) { return loss(x, weights); });
  const Values* points[] = {&qkv, &qkv_bias, &projection, &projection_bias, &table};
  const Values* WindowAttentionWeights::*members[] = {
      &WindowAttentionWeights::qkv, &WindowAttentionWeights::qkv_bias,
      &WindowAttentionWeights::projection, &WindowAttentionWeights::projection_bias,
      &WindowAttentionWeights::table};
  for (size_t i = 0; i < 5; ++i) {
    INFO("parameter " << i);
    check_gradient(*points[i], gradients[i], step, tolerance, [&](const Values& at) {
      WindowAttentionWeights moved = weights;
      moved.*members[i] = &at;
      return loss(input, moved);
    });
  }
}

}  // namespace scaling_layers_test
