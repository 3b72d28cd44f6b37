// Layers that the simulator can compute as well: the same numbers from both.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/network/arithmetic.hpp"
#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::reference_layers_test {

namespace {

LayerDescription linear(int64_t in, int64_t out, bool bias = true) {
  return layer("Linear", {{"", in}, {"", out}, {"bias", bias}});
}

/// Every kind of layer whose integer-valued results are exact: sums and products alone.
Network exact_layers() {
  LayerDescription residual = layer("Residual");
  residual.layers = {linear(6, 6)};
  residual.shortcut = {linear(6, 6, false)};
  return network_of(
      {3, 6}, {linear(6, 6), linear(6, 6, false), layer("Bias", {{"", int64_t{6}}}), layer("ReLU"),
               residual, layer("Buffer", {{"shape", int64_t{1}}}), layer("Flatten")});
}

/// |result - exact| of sums of products is at most gamma(n) times the sum of the magnitudes, which
/// the same layer gives when every number is replaced by its magnitude.
Values magnitudes(const Values& values) {
  Values result(DType::fp64, values.size());
  for (int64_t i = 0; i < values.size(); ++i) {
    result.set(i, std::abs(values.number(i)));
  }
  return result;
}

LayerValues magnitudes(LayerValues values) {
  values.input = magnitudes(values.input);
  values.output_gradient = magnitudes(values.output_gradient);
  for (size_t i = 0; i < values.parameters.size(); ++i) {
    values.parameters[i] = magnitudes(values.parameters[i]);
    values.gradients[i] = magnitudes(values.gradients[i]);
  }
  return values;
}

struct NormBounds {
  double output;
  double input_gradient;
  double gradients;
};

/// Batch norm over n values per channel, to first order in the unit roundoff u, for one
/// implementation; M, G, W bound |input|, |output gradient|, |weight|, v the variances from below.
/// |x - mean| <= 2M =: D, |normalised| <= sqrt(n).
NormBounds batch_norm_bounds(double n, double M, double G, double W, double v, DType dtype) {
  const double u = unit_roundoff(dtype);
  const double gamma = roundings(n + 2, dtype);
  const double D = 2 * M;
  const double centre = gamma * M + 2 * u * D;           // of x - mean
  const double spread = 2 * D * centre + gamma * D * D;  // of the variance
  const double inverse = spread / (2 * v) + 4 * u;       // of 1 / deviation, relative
  const double r = 1 / std::sqrt(v);
  const double normalised = r * centre + std::sqrt(n) * (inverse + 2 * u);
  const double products = n * (G * normalised + gamma * G * std::sqrt(n));
  const double sums = n * gamma * G;
  const double bracket = G + G + n * G;  // of output gradient - mean - normalised * mean
  return {W * normalised + 4 * u * (W * std::sqrt(n) + W),
          W * r *
              (sums / n + std::sqrt(n) * products / n + normalised * std::sqrt(n) * G +
               bracket * (inverse + 8 * u)),
          std::max(products, sums) + 4 * u * (n * G * std::sqrt(n) + 1)};
}

}  // namespace

TEST_CASE("integer-valued layers agree with the reference bit for bit in every floating type") {
  const Network network = exact_layers();
  for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16, DType::fp16}) {
    for (size_t i = 0; i < network.layers.size(); ++i) {
      const Layer& each = network.layers[i];
      if (each.kind == LayerKind::residual_shortcut) {
        continue;  // no kernel of its own
      }
      INFO(each.name << " " << name_of(dtype));
      const LayerValues values = values_for(each, dtype, 4, integers);
      CHECK(run_layer(libtorch(), network, i, values) ==
            run_layer(reference(), network, i, values));
    }
  }
}

TEST_CASE("an embedding gathers and sums its rows as the reference does") {
  const Network network =
      network_of({5}, {layer("Embedding", {{"", int64_t{4}}, {"", int64_t{3}}})});
  const LayerValues values = values_for(network.layers[0], DType::fp32, 4, integers);
  CHECK(run_layer(libtorch(), network, 0, values) == run_layer(reference(), network, 0, values));
}

TEST_CASE("a real-valued linear layer is within the rounding of its sums of the reference") {
  constexpr int64_t in = 37;
  constexpr int64_t samples = 9;
  const Network network = network_of({in}, {linear(in, 11)});
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    const LayerValues values = values_for(network.layers[0], dtype, samples, reals);
    const LayerResult ours = run_layer(libtorch(), network, 0, values);
    const LayerResult theirs = run_layer(reference(), network, 0, values);
    const LayerResult most = run_layer(reference(), network, 0, magnitudes(values));
    const double gamma = 2 * roundings(in + 2, dtype);  // the longest sum; both are off by as much
    CHECK(distance(ours.output, theirs.output) <= gamma * greatest(most.output));
    CHECK(distance(ours.input_gradient, theirs.input_gradient) <=
          gamma * greatest(most.input_gradient));
    for (size_t i = 0; i < 2; ++i) {
      CHECK(distance(ours.gradients[i], theirs.gradients[i]) <=
            gamma * greatest(most.gradients[i]));
    }
  }
}

TEST_CASE("batch norm agrees with the reference within its rounding, statistics included") {
  constexpr double n = 6 * 4;
  const Network network = network_of({3, 2, 2}, {layer("BatchNorm2d", {{"", int64_t{3}}})});
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    const LayerValues values = values_for(network.layers[0], dtype, 6, reals);
    const LayerResult ours = run_layer(libtorch(), network, 0, values);
    const LayerResult theirs = run_layer(reference(), network, 0, values);
    // The variance of 24 uniform numbers in [-1, 1) is 1/3 on average; 0.15 is asserted below.
    const NormBounds bounds = batch_norm_bounds(n, 1, 1, 1, 0.15, dtype);
    CHECK(distance(ours.output, theirs.output) <= 2 * bounds.output);
    CHECK(distance(ours.input_gradient, theirs.input_gradient) <= 2 * bounds.input_gradient);
    for (size_t i = 0; i < 2; ++i) {
      CHECK(distance(ours.gradients[i], theirs.gradients[i]) <= 2 * bounds.gradients);
    }
    // Running statistics are fp32 and at most 2: mean and variance with the weights 0.9 and 0.1.
    for (size_t i = 0; i < 2; ++i) {
      CHECK(distance(ours.buffers[i], theirs.buffers[i]) <=
            roundings(2 * (n + 8), DType::fp32) * 4);
    }
    for (int64_t channel = 0; channel < 3; ++channel) {
      const double before = values.buffers[1].number(channel);
      CHECK((theirs.buffers[1].number(channel) - 0.9 * before) / 0.1 > 0.15);
    }
    CHECK(ours.buffers[2] == theirs.buffers[2]);
  }
}

TEST_CASE("batch norm counts and updates once a training forward, never in backward") {
  const Network network = network_of({2}, {layer("BatchNorm1d", {{"", int64_t{2}}})});
  LayerValues values = values_for(network.layers[0], DType::fp32, 2, integers);
  values.input = Values::of(DType::fp32, {0, 0, 4, 8});
  values.buffers = {Values::of(DType::fp32, {0, 0}), Values::of(DType::fp32, {1, 1}),
                    Values::of(DType::int64, {6})};
  const LayerResult result = run_layer(libtorch(), network, 0, values);
  // Means 2 and 4; unbiased variances 8 and 32; momentum 0.1.
  CHECK(result.buffers[0].number(0) == Approx(0.2));
  CHECK(result.buffers[0].number(1) == Approx(0.4));
  CHECK(result.buffers[1].number(0) == Approx(0.9 + 0.8));
  CHECK(result.buffers[1].number(1) == Approx(0.9 + 3.2));
  CHECK(result.buffers[2].integer(0) == 7);
}

TEST_CASE("batch norm in evaluation uses its running statistics and leaves them") {
  const Network network = network_of({1}, {layer("BatchNorm1d", {{"", int64_t{1}}, {"eps", 0.0}})});
  Memory memory;
  const Slice input = memory.add(Values::of(DType::fp32, {5}));
  const Slice output = memory.add(Values(DType::fp32, 1));
  const Slice weight = memory.add(Values::of(DType::fp32, {3}));
  const Slice bias = memory.add(Values::of(DType::fp32, {1}));
  const Slice mean = memory.add(Values::of(DType::fp32, {1}));
  const Slice variance = memory.add(Values::of(DType::fp32, {4}));
  const Slice count = memory.add(Values::of(DType::int64, {9}));
  run_kernel(libtorch(), memory, Kernel::layer_forward, {input, weight, bias},
             {output, mean, variance, count}, {1, 0}, &network);
  CHECK(memory.load(output).number(0) == 7);  // (5 - 1) / 2 * 3 + 1
  CHECK(memory.load(mean).number(0) == 1);
  CHECK(memory.load(variance).number(0) == 4);
  CHECK(memory.load(count).integer(0) == 9);
}

TEST_CASE("values that a layer cannot take are refused in the reference's words") {
  const Network table = network_of({2}, {layer("Embedding", {{"", int64_t{4}}, {"", int64_t{1}}})});
  LayerValues values = values_for(table.layers[0], DType::fp32, 1, integers);
  values.input = Values::of(DType::int64, {0, 4});
  CHECK_THROWS_WITH(run_layer(libtorch(), table, 0, values),
                    "index 4 at position 1 of an embedding of 4 rows");
  const Network norm = network_of({2}, {layer("BatchNorm1d", {{"", int64_t{2}}})});
  CHECK_THROWS_AS(run_layer(libtorch(), norm, 0, values_for(norm.layers[0], DType::fp32, 1, reals)),
                  ArithmeticError);
}

}  // namespace lockstep::libtorch_test::reference_layers_test
