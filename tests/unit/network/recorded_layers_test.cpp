// Windowed attention, T5's attention and buckets, and what autograd keeps of them, as torch 2.11
// computes them: the numbers are those that tests/oracle/layers.py prints.
#include <catch2/catch.hpp>
#include <cmath>
#include <initializer_list>

#include "model/network/arithmetic/aside_attention.hpp"
#include "model/network/arithmetic/window_attention.hpp"
#include "model/network/build.hpp"
#include "model/network/relative_buckets.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace recorded_layers_test {

namespace {

Values sine(int64_t elements, double step) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, std::sin(step * static_cast<double>(i + 1)));
  }
  return values;
}

Values none_like(const Values& values) { return Values(DType::fp64, values.size()); }

/// The sum of the output over its factor, and of each gradient over one of its own.
void check_recorded(const Values& output, const std::vector<const Values*>& gradients,
                    std::initializer_list<double> recorded) {
  REQUIRE(recorded.size() == gradients.size() + 1);
  const double* expected = recorded.begin();
  CHECK(dot(output, sine(output.size(), 0.13)) == Approx(*expected++).epsilon(1e-10));
  for (const Values* gradient : gradients) {
    INFO("gradient " << expected - recorded.begin() - 1);
    CHECK(dot(*gradient, sine(gradient->size(), 0.07)) == Approx(*expected++).epsilon(1e-10));
  }
}

void check_windows(int64_t shift, std::initializer_list<double> recorded) {
  INFO("shift " << shift);
  const WindowShape shape = window_shape(
      {.dim = 4, .num_heads = 2, .window_size = {2, 2}, .shift_size = {shift, shift}}, {3, 5, 4});
  const Values input = sine(120, 0.37);
  const Values weights[] = {sine(48, 0.51), sine(12, 0.9), sine(16, 0.23), sine(4, 0.61),
                            sine(18, 0.77)};
  const WindowAttentionWeights set{weights, weights + 1, weights + 2, weights + 3, weights + 4};
  Values output(DType::fp64, 120);
  window_attention_forward(input, set, 2, shape, output);
  Values of_input = none_like(input);
  Values found[] = {none_like(weights[0]), none_like(weights[1]), none_like(weights[2]),
                    none_like(weights[3]), none_like(weights[4])};
  window_attention_backward(input, set, sine(120, 0.13), 2, shape, &of_input,
                            {found, found + 1, found + 2, found + 3, found + 4});
  check_recorded(output, {&of_input, found, found + 1, found + 2, found + 3, found + 4}, recorded);
}

/// Without biases and without a factor of the scores, two heads of three.
void check_attention(const Values& input, const Values& beside, bool is_cross,
                     std::initializer_list<double> recorded) {
  const AsideAttentionShape shape{{.embed_dim = 4,
                                   .num_heads = 2,
                                   .head_dim = 3,
                                   .source_dim = 4,
                                   .scaled = false,
                                   .bias = false},
                                  2,
                                  3,
                                  is_cross ? 2 : 3};
  const Values weights[] = {sine(24, 0.21), sine(24, 0.31), sine(24, 0.41), sine(24, 0.51)};
  const AsideWeights set{{weights, weights + 1, weights + 2, weights + 3}, {}};
  const AsideOperands aside{is_cross ? beside : input, is_cross ? nullptr : &beside};
  Values output = none_like(input);
  aside_attention_forward(input, aside, set, shape, output);
  Values of_input = none_like(input);
  Values of_beside = none_like(beside);
  Values found[] = {none_like(weights[0]), none_like(weights[1]), none_like(weights[2]),
                    none_like(weights[3])};
  AsideGradients gradients{.input = &of_input};
  (is_cross ? gradients.source : gradients.bias) = &of_beside;
  gradients.weights = {{found, found + 1, found + 2, found + 3}, {}};
  aside_attention_backward(input, aside, set, sine(24, 0.13), shape, gradients);
  if (is_cross) {
    check_recorded(output, {&of_input, &of_beside, found, found + 1, found + 2, found + 3},
                   recorded);
    return;
  }
  // The recording has the gradient of the table: that of its rows' places, summed.
  const RelativePositionBiasArguments table{2, 8, 6, true};
  Values of_table(DType::fp64, 16);
  for (int64_t place = 0; place < of_beside.size(); ++place) {
    const int64_t head = place / 9 % 2;
    const int64_t row = relative_bucket(table, place / 3 % 3, place % 3);
    of_table.set(2 * row + head, of_table.number(2 * row + head) + of_beside.number(place));
  }
  check_recorded(output, {&of_input, &of_table, found, found + 1, found + 2, found + 3}, recorded);
}

/// Kept beside the layers in front and the loss, which keeps the output.
Bytes kept_by(LayerKind kind, Shape input, std::vector<LayerDescription> layers) {
  const BuildResult built = build_network({.input = std::move(input),
                                           .flash_attention = false,
                                           .layers = std::move(layers),
                                           .loss = {.kind = "MSELoss"}});
  REQUIRE(built.ok());
  for (const Layer& layer : built.network.layers) {
    if (layer.kind == kind) {
      const int64_t shared = (layer.saves.input ? elements_of(layer.input) : 0) +
                             (layer.saves.branch ? elements_of(layer.aside->shape) : 0);
      return 4_B * (layer.saves.elements + shared) + layer.saves.fixed;
    }
  }
  return {};
}

LayerDescription recorded_layer(std::string kind, std::vector<NamedArgument> arguments = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

}  // namespace

TEST_CASE("attention in windows has the values and gradients that torch has") {
  check_windows(0, {8.5493577949, -17.6575472233, 2.09930763842, 20.2998513755, -11.5975381802,
                    2.66636969351, -0.845319808525});
  check_windows(1, {17.8775032841, -0.921936458758, -27.8265815861, 19.4344760732, -2.13979092457,
                    2.66636969351, 0.502294874691});
}

TEST_CASE("T5's attention has the values and gradients that torch has") {
  check_attention(sine(24, 0.37), sine(16, 0.91), true,
                  {-0.573447030846, -0.234213748598, -0.17846722898, 0.468425836792, -1.27985139276,
                   -1.56457411701, 5.1368089319});
  const Values numbers = sine(16, 0.53);
  const RelativePositionBiasArguments table{2, 8, 6, true};
  Values bias(DType::fp64, 2 * 2 * 9);
  for (int64_t place = 0; place < bias.size(); ++place) {
    const int64_t row = relative_bucket(table, place / 3 % 3, place % 3);
    bias.set(place, numbers.number(2 * row + place / 9 % 2));
  }
  check_attention(sine(24, 0.37), bias, false,
                  {0.337261926027, 0.160460417566, -0.0430901570442, 0.0926464310467,
                   0.830915138618, 0.0994866273522, 3.98695840182});
}

TEST_CASE("buckets of distances are those that torch computes in fp32") {
  const std::vector<int64_t> to_last = {0, 27, 29, 30, 31, 31, 31, 31};
  const std::vector<int64_t> from_last = {15, 15, 15, 15, 15, 14, 13, 11};
  const std::vector<int64_t> causal = {31, 31, 31, 31, 30, 27, 24, 19};
  const RelativePositionBiasArguments both{.num_heads = 1};
  const RelativePositionBiasArguments before{.num_heads = 1, .bidirectional = false};
  for (size_t i = 0; i < to_last.size(); ++i) {
    const int64_t other = 25 * static_cast<int64_t>(i);
    CHECK(relative_bucket(both, 0, other) == to_last[i]);
    CHECK(relative_bucket(both, 199, other) == from_last[i]);
    CHECK(relative_bucket(before, 0, other) == 0);
    CHECK(relative_bucket(before, 199, other) == causal[i]);
  }
}

TEST_CASE("what is kept for backward is what torch's autograd saves") {
  CHECK(kept_by(LayerKind::window_attention, {8, 8, 8},
                {recorded_layer("WindowAttention", {{"dim", int64_t{8}},
                                                    {"window_size", int64_t{4}},
                                                    {"shift_size", int64_t{2}},
                                                    {"num_heads", int64_t{2}}})}) == 4_B * 4608);
  const auto beside = [](const char* kind, std::vector<LayerDescription> of) {
    LayerDescription aside = recorded_layer("Aside");
    aside.shortcut = std::move(of);
    aside.layers = {recorded_layer(kind, {{"embed_dim", int64_t{16}},
                                          {"num_heads", int64_t{2}},
                                          {"scaled", false},
                                          {"bias", false}})};
    return std::vector<LayerDescription>{std::move(aside)};
  };
  CHECK(kept_by(LayerKind::biased_attention, {6, 16},
                beside("BiasedAttention",
                       {recorded_layer("RelativePositionBias", {{"num_heads", int64_t{2}}})})) ==
        4_B * 552);
  CHECK(kept_by(LayerKind::cross_attention, {6, 16},
                beside("CrossAttention", {recorded_layer("Positions", {{"count", int64_t{4}}})})) ==
        4_B * 528);
  CHECK(kept_by(LayerKind::stochastic_depth, {8},
                {recorded_layer("Linear", {{"", int64_t{8}}, {"", int64_t{8}}}),
                 recorded_layer("StochasticDepth", {{"p", 0.5}})}) == 4_B);
}

TEST_CASE("squeeze-and-excitation keeps what torch's autograd saves of it") {
  // 314 elements: the image (8 x 6 x 6) once, though the mean and the product read it, its means,
  // both convolutions' inputs, and both sides of Hardsigmoid. The loss keeps the product.
  LayerDescription product = recorded_layer("Multiply");
  const auto convolution = [](int64_t in, int64_t out) {
    return recorded_layer("Conv2d", {{"", in}, {"", out}, {"", int64_t{1}}, {"bias", false}});
  };
  product.layers = {recorded_layer("AdaptiveAvgPool2d", {{"", int64_t{1}}}), convolution(8, 2),
                    recorded_layer("ReLU"), convolution(2, 8), recorded_layer("Hardsigmoid")};
  const BuildResult built = build_network({.input = Shape{8, 6, 6},
                                           .layers = {convolution(8, 8), std::move(product)},
                                           .loss = {.kind = "MSELoss"}});
  REQUIRE(built.ok());
  CHECK(built.network.activation_bytes(DType::fp32) == 4_B * (314 + 288));
}

}  // namespace recorded_layers_test
