// Layers that the simulator does not compute: their output against the formula written out here.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::formula_test {

namespace {

/// fp64 formulas with fewer than a thousand roundings on numbers below 10.
constexpr double margin = 1000 * 10 * 0x1p-53;

LayerResult fp64_result(const Network& network, int64_t samples, LayerValues* values) {
  *values = values_for(network.layers[0], DType::fp64, samples, reals);
  return run_layer(libtorch(), network, 0, *values);
}

struct Attention {
  int64_t positions;
  int64_t width;
  int64_t heads;
  bool causal;
};

/// row * weight^T + bias, weight rows begin at `first`.
double projected(const Values& x, int64_t row, const Values& weight, const Values& bias,
                 int64_t out, int64_t width) {
  double sum = bias.number(out);
  for (int64_t i = 0; i < width; ++i) {
    sum += x.number(row * width + i) * weight.number(out * width + i);
  }
  return sum;
}

/// Vaswani et al. 2017: softmax(Q K^T / sqrt(width of a head)) V for each head, then the output
/// projection. One sample.
Values attention_output(const Attention& shape, const LayerValues& values) {
  const auto& [s, e, heads, causal] = shape;
  const int64_t d = e / heads;
  const auto part = [&](int64_t which, int64_t position, int64_t feature) {
    return projected(values.input, position, values.parameters[0], values.parameters[1],
                     which * e + feature, e);
  };
  Values mixed(DType::fp64, s * e);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < s; ++row) {
      std::vector<double> weights;
      double total = 0;
      for (int64_t column = 0; column < (causal ? row + 1 : s); ++column) {
        double score = 0;
        for (int64_t i = head * d; i < (head + 1) * d; ++i) {
          score += part(0, row, i) * part(1, column, i);
        }
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
        total += weights.back();
      }
      for (int64_t i = head * d; i < (head + 1) * d; ++i) {
        double sum = 0;
        for (size_t column = 0; column < weights.size(); ++column) {
          sum += weights[column] / total * part(2, static_cast<int64_t>(column), i);
        }
        mixed.set(row * e + i, sum);
      }
    }
  }
  Values output(DType::fp64, s * e);
  for (int64_t i = 0; i < s * e; ++i) {
    output.set(i, projected(mixed, i / e, values.parameters[2], values.parameters[3], i % e, e));
  }
  return output;
}

}  // namespace

TEST_CASE("GELU is x Phi(x), or its approximation by tanh") {
  for (const std::string approximate : {"none", "tanh"}) {
    LayerValues values;
    const Network network = network_of({7}, {layer("GELU", {{"approximate", approximate}})});
    const LayerResult result = fp64_result(network, 2, &values);
    for (int64_t i = 0; i < values.input.size(); ++i) {
      const double x = values.input.number(i);
      const double exact = x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
      const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
      const double expected = approximate == "none" ? exact : 0.5 * x * (1 + std::tanh(inner));
      CHECK(result.output.number(i) == Approx(expected).epsilon(0).margin(margin));
    }
  }
}

TEST_CASE("layer norm normalises over its last dimensions") {
  LayerValues values;
  const Network network =
      network_of({3, 2, 4}, {layer("LayerNorm", {{"", std::vector<int64_t>{2, 4}}})});
  const LayerResult result = fp64_result(network, 2, &values);
  for (int64_t row = 0; row < 6; ++row) {
    double mean = 0;
    double variance = 0;
    for (int64_t i = 0; i < 8; ++i) {
      mean += values.input.number(8 * row + i) / 8;
    }
    for (int64_t i = 0; i < 8; ++i) {
      variance += std::pow(values.input.number(8 * row + i) - mean, 2) / 8;
    }
    for (int64_t i = 0; i < 8; ++i) {
      const double expected = (values.input.number(8 * row + i) - mean) /
                                  std::sqrt(variance + 1e-5) * values.parameters[0].number(i) +
                              values.parameters[1].number(i);
      CHECK(result.output.number(8 * row + i) == Approx(expected).epsilon(0).margin(margin));
    }
  }
}

TEST_CASE("a convolution is the sum over its window, with stride, padding, dilation and groups") {
  LayerValues values;
  const Network network =
      network_of({4, 5, 6}, {layer("Conv2d", {{"", int64_t{4}},
                                              {"", int64_t{6}},
                                              {"kernel_size", std::vector<int64_t>{2, 3}},
                                              {"stride", std::vector<int64_t>{2, 1}},
                                              {"padding", std::vector<int64_t>{1, 0}},
                                              {"dilation", std::vector<int64_t>{1, 2}},
                                              {"groups", int64_t{2}}})});
  const LayerResult result = fp64_result(network, 1, &values);
  REQUIRE(network.layers[0].output == Shape{6, 3, 2});
  for (int64_t i = 0; i < 36; ++i) {
    const int64_t out = i / 6;
    double expected = values.parameters[1].number(out);
    for (int64_t tap = 0; tap < 12; ++tap) {  // [2 channels of the group, 2 rows, 3 columns]
      const int64_t channel = out / 3 * 2 + tap / 6;
      const int64_t row = i / 2 % 3 * 2 - 1 + tap / 3 % 2;
      const int64_t column = i % 2 + tap % 3 * 2;
      if (row >= 0 && row < 5) {
        expected += values.input.number(channel * 30 + row * 6 + column) *
                    values.parameters[0].number(out * 12 + tap);
      }
    }
    CHECK(result.output.number(i) == Approx(expected).epsilon(0).margin(margin));
  }
}

TEST_CASE("pools take the greatest or the mean of their windows") {
  LayerValues values;
  const auto output_of = [&values](LayerDescription pool) {
    const Network network = network_of({1, 4, 4}, {std::move(pool)});
    values = values_for(network.layers[0], DType::fp32, 1, integers);
    for (int64_t i = 0; i < 16; ++i) {
      values.input.set(i, static_cast<double>(i));
    }
    return run_layer(libtorch(), network, 0, values);
  };
  const NamedArgument two{"", int64_t{2}};
  CHECK(output_of(layer("MaxPool2d", {two})).output == Values::of(DType::fp32, {5, 7, 13, 15}));
  CHECK(output_of(layer("AvgPool2d", {two})).output ==
        Values::of(DType::fp32, {2.5, 4.5, 10.5, 12.5}));
  CHECK(output_of(layer("AdaptiveAvgPool2d", {{"", int64_t{1}}})).output ==
        Values::of(DType::fp32, {7.5}));
  // Padding counts as zeros in a mean, never as a maximum.
  const std::vector<NamedArgument> padded{{"", int64_t{2}}, {"padding", int64_t{1}}};
  CHECK(output_of(layer("MaxPool2d", padded)).output ==
        Values::of(DType::fp32, {0, 2, 3, 8, 10, 11, 12, 14, 15}));
  CHECK(output_of(layer("AvgPool2d", padded)).output ==
        Values::of(DType::fp32, {0, 0.75, 0.75, 3, 7.5, 4.5, 3, 6.75, 3.75}));
}

TEST_CASE("a positional embedding adds row i to position i and sums its gradient over the batch") {
  const Network network =
      network_of({2, 3}, {layer("PositionalEmbedding", {{"", int64_t{4}}, {"", int64_t{3}}})});
  const LayerValues values = values_for(network.layers[0], DType::fp32, 2, integers);
  const LayerResult result = run_layer(libtorch(), network, 0, values);
  for (int64_t i = 0; i < 12; ++i) {
    CHECK(result.output.number(i) == values.input.number(i) + values.parameters[0].number(i % 6));
    const double added =
        i < 6 ? values.output_gradient.number(i) + values.output_gradient.number(i + 6) : 0;
    CHECK(result.gradients[0].number(i) == values.gradients[0].number(i) + added);
  }
  CHECK(result.input_gradient == values.output_gradient);
}

TEST_CASE("attention is softmax(Q K^T / sqrt(d)) V of every head, causal or not") {
  for (const bool causal : {false, true}) {
    LayerValues values;
    const Network network =
        network_of({5, 6}, {layer(causal ? "CausalSelfAttention" : "MultiheadAttention",
                                  {{"", int64_t{6}}, {"", int64_t{2}}})});
    const LayerResult result = fp64_result(network, 1, &values);
    CHECK(distance(result.output, attention_output({5, 6, 2, causal}, values)) <= margin);
  }
}

}  // namespace lockstep::libtorch_test::formula_test
