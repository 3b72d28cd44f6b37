// LayerNorm, GELU, positional embedding and attention.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/core/random.hpp"
#include "model/network/arithmetic/activation.hpp"
#include "model/network/arithmetic/attention.hpp"
#include "model/network/arithmetic/embedding.hpp"
#include "model/network/arithmetic/layer_norm.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace sequence_layers_test {

namespace {

// Central differences of a smooth function err by step^2 / 6 of its third derivative, and by the
// round-off of the function over the step.
constexpr double step = 1e-4;
constexpr double tolerance = 1e-6;

Values reals(int64_t elements, uint64_t key) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, 2 * random_unit(key, static_cast<uint64_t>(i)) - 1);
  }
  return values;
}

void check_near(const Values& values, std::initializer_list<double> expected, double margin) {
  REQUIRE(values.size() == static_cast<int64_t>(expected.size()));
  int64_t i = 0;
  for (const double number : expected) {
    CHECK(values.number(i++) == Approx(number).margin(margin));
  }
}

}  // namespace

TEST_CASE("layer norm brings each row to mean 0 and variance 1, then scales and shifts") {
  // Mean 2, biased variance 8/3 without eps; and a row of equal numbers, which becomes 0.
  const LayerNormShape shape{2, 3, 0};
  Values output(DType::fp64, 3);
  const Values weight = fp64({1, 2, 3});
  const Values bias = fp64({10, 20, 30});
  layer_norm_forward(fp64({0, 2, 4}), &weight, &bias, {1, 3, 0}, output);
  const double unit = 2 / std::sqrt(8.0 / 3.0);
  check_near(output, {10 - unit, 20, 30 + 3 * unit}, 1e-12);
  Values flat(DType::fp64, 6);
  layer_norm_forward(fp64({5, 5, 5, 0, 2, 4}), nullptr, nullptr, {shape.rows, shape.width, 1e-5},
                     flat);
  CHECK(flat.slice(0, 3) == fp64({0, 0, 0}));
}

TEST_CASE("layer norm's gradients are slopes") {
  const LayerNormShape shape{2, 4, 1e-5};
  const Values input = reals(8, 1);
  const Values weight = reals(4, 2);
  const Values bias = reals(4, 3);
  const Values output_gradient = reals(8, 4);
  const auto loss = [&](const Values& x, const Values& w, const Values& b) {
    Values output(DType::fp64, 8);
    layer_norm_forward(x, &w, &b, shape, output);
    return dot(output, output_gradient);
  };
  Values input_gradient(DType::fp64, 8);
  Values weight_gradient(DType::fp64, 4);
  Values bias_gradient(DType::fp64, 4);
  layer_norm_input_gradient(input, output_gradient, &weight, shape, input_gradient);
  layer_norm_weight_gradients(input, output_gradient, shape, weight_gradient, &bias_gradient);
  check_gradient(input, input_gradient, step, tolerance,
                 [&](const Values& x) { return loss(x, weight, bias); });
  check_gradient(weight, weight_gradient, step, tolerance,
                 [&](const Values& w) { return loss(input, w, bias); });
  check_gradient(bias, bias_gradient, step, tolerance,
                 [&](const Values& b) { return loss(input, weight, b); });
}

TEST_CASE("GELU is x Phi(x), or its approximation by tanh") {
  // Phi(1) = 0.841344746..; tanh(sqrt(2 / pi) 1.044715) = 0.682383981.. by hand.
  Values output(DType::fp64, 3);
  gelu_forward(fp64({-1, 0, 1}), GeluForm::exact, output);
  check_near(output, {-0.15865525393145707, 0, 0.8413447460685429}, 1e-15);
  const double bend = std::tanh(std::sqrt(2 / std::acos(-1.0)) * 1.044715);
  gelu_forward(fp64({-1, 0, 1}), GeluForm::tanh, output);
  check_near(output, {-0.5 * (1 - bend), 0, 0.5 * (1 + bend)}, 1e-15);
}

TEST_CASE("GELU's gradients are slopes, in both forms") {
  const Values input = fp64({-3, -1, -0.2, 0, 0.7, 2.5});
  const Values output_gradient = fp64({1, -2, 3, 1, 0.5, -1});
  for (const GeluForm form : {GeluForm::exact, GeluForm::tanh}) {
    Values gradient(DType::fp64, 6);
    gelu_backward(input, output_gradient, form, gradient);
    check_gradient(input, gradient, step, tolerance, [&](const Values& x) {
      Values output(DType::fp64, 6);
      gelu_forward(x, form, output);
      return dot(output, output_gradient);
    });
  }
}

TEST_CASE("a positional embedding adds its rows to each sample, and sums their gradients") {
  Values output(DType::fp32, 8);
  // Two samples of two positions of width 2; a third row is not used.
  const Values weight = fp32({10, 20, 30, 40, 50, 60});
  positional_embedding_forward(fp32({1, 2, 3, 4, 5, 6, 7, 8}), weight, 2, output);
  CHECK(output == fp32({11, 22, 33, 44, 15, 26, 37, 48}));
  Values gradient = fp32({0, 0, 0, 0, 7, 7});
  positional_embedding_weight_gradient(fp32({1, 2, 3, 4, 5, 6, 7, 8}), 2, gradient);
  CHECK(gradient == fp32({6, 8, 10, 12, 7, 7}));
}

TEST_CASE("attention weighs values by the softmax of scaled scores") {
  // One head of width 1, two positions: query 1 and 2, key log 3 and 0, value 8 and 4.
  const double k = std::log(3.0);
  const Values projected = fp64({1, k, 8, 2, 0, 4});
  Values attended(DType::fp64, 2);
  attention_forward(projected, {1, 2, 1, 1, false}, attended);
  check_near(attended, {8 * 0.75 + 4 * 0.25, 8 * 0.9 + 4 * 0.1}, 1e-12);  // 3:1 and 9:1
  attention_forward(projected, {1, 2, 1, 1, true}, attended);
  check_near(attended, {8, 8 * 0.9 + 4 * 0.1}, 1e-12);  // the first sees itself alone
}

TEST_CASE("attention divides scores by the root of the head's width, and keeps heads apart") {
  // Two heads of width 4, one position each attends to itself: the values come through.
  Values attended(DType::fp64, 8);
  Values one = reals(24, 5);
  attention_forward(one, {1, 1, 2, 4, false}, attended);
  CHECK(attended == one.slice(16, 8));
  // One head of width 4: scores 4 and 0 over 2 give e^2 to 1.
  Values two(DType::fp64, 24);
  for (int64_t i = 0; i < 4; ++i) {
    two.set(i, 1);      // query of position 0
    two.set(4 + i, 1);  // key of position 0
    two.set(8 + i, 1);  // value of position 0
  }
  attention_forward(two, {1, 2, 1, 4, false}, attended);
  CHECK(attended.number(0) == Approx(1 / (1 + std::exp(-2.0))).epsilon(1e-12));
}

TEST_CASE("a self-attention layer's gradients are slopes, causal or not") {
  for (const bool causal : {false, true}) {
    const AttentionShape shape{2, 3, 2, 2, causal};
    const int64_t width = 4;
    const std::vector<Values> at = {reals(24, 1), reals(3 * width * width, 2), reals(3 * width, 3),
                                    reals(width * width, 4), reals(width, 5)};
    const Values output_gradient = reals(24, 6);
    const auto weights = [](const std::vector<Values>& v) {
      return AttentionWeights{&v[1], &v[2], &v[3], &v[4]};
    };
    std::vector<Values> gradients;
    for (const Values& values : at) {
      gradients.emplace_back(DType::fp64, values.size());
    }
    self_attention_backward(at[0], weights(at), output_gradient, shape, &gradients[0],
                            {&gradients[1], &gradients[2], &gradients[3], &gradients[4]});
    for (size_t operand = 0; operand < at.size(); ++operand) {
      INFO("operand " << operand << (causal ? ", causal" : ""));
      check_gradient(at[operand], gradients[operand], step, tolerance, [&](const Values& changed) {
        std::vector<Values> values = at;
        values[operand] = changed;
        Values output(DType::fp64, 24);
        self_attention_forward(values[0], weights(values), shape, output);
        return dot(output, output_gradient);
      });
    }
  }
}

TEST_CASE("attention without biases has no place for their gradients") {
  const AttentionShape shape{1, 2, 1, 2, true};
  const Values input = reals(4, 1);
  const Values in_weight = reals(12, 2);
  const Values out_weight = reals(4, 3);
  Values out_gradient(DType::fp64, 4);
  self_attention_backward(input, {&in_weight, nullptr, &out_weight, nullptr}, reals(4, 4), shape,
                          nullptr, {nullptr, nullptr, &out_gradient, nullptr});
  CHECK(dot(out_gradient, out_gradient) > 0);
}

}  // namespace sequence_layers_test
