// Gradients of layers that the simulator does not compute, against finite differences in fp64.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::gradient_test {

namespace {

constexpr double step = 0x1p-17;
/// Truncation step^2 / 6 * |third derivative| is below 1e-11 * 10^3 for the smooth functions of
/// these sizes; rounding of a sum of hundreds of numbers below 10 is 1e-13 / step, about 1e-8.
constexpr double margin = 1e-7;

double objective(const Execute& execute, const Network& network, const LayerValues& values) {
  const LayerResult result = run_layer(execute, network, 0, values);
  double sum = 0;
  for (int64_t i = 0; i < result.output.size(); ++i) {
    sum += result.output.number(i) * values.output_gradient.number(i);
  }
  return sum;
}

/// d objective / d element of `operand`, which belongs to `values`.
double slope(const Network& network, LayerValues& values, Values& operand, int64_t element) {
  const double middle = operand.number(element);
  operand.set(element, middle + step);
  const double above = objective(libtorch(), network, values);
  operand.set(element, middle - step);
  const double below = objective(libtorch(), network, values);
  operand.set(element, middle);
  return (above - below) / (2 * step);
}

void check_gradients(const Network& network, int64_t samples) {
  INFO(name_of(network.layers[0].kind));
  LayerValues values = values_for(network.layers[0], DType::fp64, samples, reals);
  const LayerResult result = run_layer(libtorch(), network, 0, values);
  for (int64_t i = 0; i < values.input.size(); ++i) {
    CHECK(result.input_gradient.number(i) ==
          Approx(slope(network, values, values.input, i)).epsilon(0).margin(margin));
  }
  for (size_t tensor = 0; tensor < values.parameters.size(); ++tensor) {
    for (int64_t i = 0; i < values.parameters[tensor].size(); ++i) {
      const double added = result.gradients[tensor].number(i) - values.gradients[tensor].number(i);
      CHECK(added ==
            Approx(slope(network, values, values.parameters[tensor], i)).epsilon(0).margin(margin));
    }
  }
}

}  // namespace

TEST_CASE("gradients of pointwise layers and norms are their outputs' slopes") {
  check_gradients(network_of({5}, {layer("GELU")}), 3);
  check_gradients(network_of({5}, {layer("GELU", {{"approximate", std::string("tanh")}})}), 3);
  check_gradients(network_of({2, 4}, {layer("LayerNorm", {{"", std::vector<int64_t>{4}}})}), 2);
  check_gradients(network_of({2, 4}, {layer("LayerNorm", {{"", std::vector<int64_t>{4}},
                                                          {"elementwise_affine", false}})}),
                  2);
  check_gradients(network_of({2, 3}, {layer("BatchNorm1d", {{"", int64_t{2}}})}), 2);
  check_gradients(
      network_of({2, 3}, {layer("PositionalEmbedding", {{"", int64_t{3}}, {"", int64_t{3}}})}), 2);
}

TEST_CASE("gradients of convolutions and pools are their outputs' slopes") {
  check_gradients(network_of({2, 4, 4}, {layer("Conv2d", {{"", int64_t{2}},
                                                          {"", int64_t{4}},
                                                          {"", int64_t{3}},
                                                          {"stride", int64_t{2}},
                                                          {"padding", int64_t{1}},
                                                          {"groups", int64_t{2}}})}),
                  2);
  const NamedArgument two{"", int64_t{2}};
  check_gradients(network_of({2, 4, 4}, {layer("MaxPool2d", {two})}), 2);
  check_gradients(network_of({2, 4, 4}, {layer("AvgPool2d", {two, {"padding", int64_t{1}}})}), 2);
  check_gradients(network_of({2, 5, 4}, {layer("AdaptiveAvgPool2d", {two})}), 2);
}

TEST_CASE("gradients of attention are its output's slopes") {
  for (const std::string kind : {"MultiheadAttention", "CausalSelfAttention"}) {
    for (const bool bias : {true, false}) {
      check_gradients(
          network_of({3, 4}, {layer(kind, {{"", int64_t{4}}, {"", int64_t{2}}, {"bias", bias}})}),
          2);
    }
  }
}

TEST_CASE("gradients of dropout are those of the mask that its forward drew") {
  const Network network = network_of({50}, {layer("Dropout", {{"p", 0.25}})});
  const LayerValues values = values_for(network.layers[0], DType::fp64, 8, reals);
  const LayerResult result = run_layer(libtorch(), network, 0, values);
  for (int64_t i = 0; i < values.input.size(); ++i) {
    const double factor = result.output.number(i) == 0 ? 0 : 1 / 0.75;
    CHECK(result.output.number(i) == Approx(values.input.number(i) * factor));
    CHECK(result.input_gradient.number(i) == Approx(values.output_gradient.number(i) * factor));
  }
}

}  // namespace lockstep::libtorch_test::gradient_test
