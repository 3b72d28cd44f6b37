// Layers of transformers and images: the simulator's numbers are LibTorch's, forward and backward,
// within what rounding explains.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::reference_transformer_test {

namespace {

/// How far one implementation may be from the exact result.
struct Bounds {
  double output = 0;
  double input_gradient = 0;
  double gradients = 0;  ///< of parameters
};

/// Both are off by as much.
void check_within(const LayerResult& ours, const LayerResult& theirs, const Bounds& bounds) {
  CHECK(distance(ours.output, theirs.output) <= 2 * bounds.output);
  CHECK(distance(ours.input_gradient, theirs.input_gradient) <= 2 * bounds.input_gradient);
  REQUIRE(ours.gradients.size() == theirs.gradients.size());
  for (size_t i = 0; i < ours.gradients.size(); ++i) {
    INFO("parameter " << i);
    CHECK(distance(ours.gradients[i], theirs.gradients[i]) <= 2 * bounds.gradients);
  }
}

void compare(const Network& network, DType dtype, int64_t samples, const Bounds& bounds) {
  INFO(network.layers[0].name << " " << name_of(dtype));
  const LayerValues values = values_for(network.layers[0], dtype, samples, reals);
  check_within(run_layer(libtorch(), network, 0, values),
               run_layer(reference(), network, 0, values), bounds);
}

/// The sums of products of this layer are exact on whole numbers.
void compare_exactly(const Network& network) {
  for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16, DType::fp16}) {
    INFO(network.layers[0].name << " " << name_of(dtype));
    const LayerValues values = values_for(network.layers[0], dtype, 2, integers);
    CHECK(run_layer(libtorch(), network, 0, values) == run_layer(reference(), network, 0, values));
  }
}

constexpr NamedArgument positional(int64_t value) { return {"", value}; }

/// Layer norm over n values of at most 1, with a variance of at least v; |normalised| <= sqrt(n).
/// `sums`: output gradients behind the gradient of a weight.
Bounds layer_norm_bounds(double n, double sums, double v, DType dtype) {
  const double u = unit_roundoff(dtype);
  const double gamma = roundings(n + 2, dtype);
  const double spread_of_two = 2;                                // |x - mean|
  const double centre = gamma + 2 * u * spread_of_two;           // of x - mean
  const double spread = 2 * spread_of_two * centre + gamma * 4;  // of the variance
  const double inverse = spread / (2 * v) + 4 * u;               // of 1 / deviation, relative
  const double r = 1 / std::sqrt(v);
  const double normalised = r * centre + std::sqrt(n) * (inverse + 2 * u);
  const double product = n * (normalised + gamma * std::sqrt(n));  // of sum(g normalised)
  const double bracket = 2 + std::sqrt(n) * std::sqrt(n);
  return {normalised + 4 * u * (std::sqrt(n) + 1),
          r * (gamma + std::sqrt(n) * product / n + normalised * std::sqrt(n) +
               bracket * (inverse + 8 * u)),
          sums * (normalised + roundings(sums + 2, dtype) * (std::sqrt(n) + 1)) + 4 * u};
}

/// Self-attention of width w, heads of width d, s positions, b samples; every operand is at most 1.
/// Magnitudes of what is computed and how far it is off, one after the other.
Bounds attention_bounds(double w, double d, double s, double b, DType dtype) {
  const auto gamma = [dtype](double n) { return roundings(n + 2, dtype); };
  const double scale = 1 / std::sqrt(d);
  const double projected = w + 1;
  const double off_projected = gamma(w + 1) * projected;
  const double off_score =
      scale * d * 2 * projected * off_projected + gamma(d + 2) * scale * d * projected * projected;
  const double off_probability = std::expm1(2 * off_score) + gamma(s + 16);  // relative
  const double attended = projected;
  const double off_attended = attended * off_probability + off_projected + gamma(s) * attended;
  const double output = w * attended + 1;
  const double back = w;  // gradient of what was attended
  const double off_back = gamma(w) * back;
  const double slope = d * back * projected;  // of a probability
  const double off_slope = d * (off_back * projected + back * off_projected) + gamma(d) * slope;
  const double score = 2 * slope;  // gradient of a score, its probability aside
  const double off_score_back = score * 2 * off_probability + 2 * off_slope + gamma(s + 4) * score;
  const double through_scores = scale * s * score * projected;
  const double off_through = scale * s * (off_score_back * projected + score * off_projected) +
                             gamma(s + 2) * through_scores;
  const double through_values = s * back;
  const double off_values = s * (back * off_probability + off_back) + gamma(s) * through_values;
  const double middle = std::max(through_scores, through_values);
  const double off_middle = std::max(off_through, off_values);
  const double rows = b * s;
  return {w * off_attended + gamma(w + 1) * output,
          3 * w * off_middle + gamma(3 * w) * 3 * w * middle,
          rows * (off_middle + off_attended) + gamma(rows) * rows * (middle + attended)};
}

}  // namespace

TEST_CASE("convolutions, pooling and positional embeddings agree on whole numbers bit for bit") {
  const Shape image{4, 6, 5};
  compare_exactly(network_of(image, {layer("Conv2d", {positional(4),
                                                      positional(6),
                                                      {"kernel_size", std::vector<int64_t>{2, 3}},
                                                      {"stride", std::vector<int64_t>{2, 1}},
                                                      {"padding", std::vector<int64_t>{1, 2}},
                                                      {"dilation", std::vector<int64_t>{1, 2}},
                                                      {"groups", int64_t{2}}})}));
  compare_exactly(network_of(
      image, {layer("Conv2d", {positional(4), positional(2), positional(1), {"bias", false}})}));
  compare_exactly(network_of(
      image,
      {layer("MaxPool2d", {positional(3), {"stride", int64_t{2}}, {"padding", int64_t{1}}})}));
  compare_exactly(
      network_of({3, 4}, {layer("PositionalEmbedding", {positional(5), positional(4)})}));
  compare_exactly(network_of({3, 4}, {layer("Dropout", {{"p", 0.0}})}));
}

TEST_CASE("averages of windows agree within the rounding of their sums") {
  const Shape image{2, 7, 5};
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    // Nine numbers of at most 1, and nine windows that meet an element.
    const double off = roundings(9 + 2, dtype);
    compare(network_of(image,
                       {layer("AvgPool2d",
                              {positional(3), {"stride", int64_t{1}}, {"padding", int64_t{1}}})}),
            dtype, 3, {off, off, 0});
    // Windows of at most 4 x 3.
    compare(network_of(image, {layer("AdaptiveAvgPool2d", {{"", std::vector<int64_t>{3, 2}}})}),
            dtype, 3, {roundings(14, dtype), roundings(14, dtype), 0});
  }
}

TEST_CASE("a real-valued convolution agrees within the rounding of its sums") {
  const Network network = network_of(
      {3, 6, 6},
      {layer("Conv2d", {positional(3), positional(4), positional(3), {"padding", int64_t{1}}})});
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    // 27 products and a bias; 36 products of an input's gradient; 2 samples of 36 positions.
    compare(network, dtype, 2,
            {roundings(28 + 2, dtype) * 28, roundings(36 + 2, dtype) * 36,
             roundings(73 + 2, dtype) * 73});
  }
}

TEST_CASE("GELU agrees within a few units of round-off, exact and by tanh") {
  for (const bool tanh : {false, true}) {
    LayerDescription gelu = layer("GELU");
    if (tanh) {
      gelu.arguments.push_back({"approximate", std::string("tanh")});
    }
    const Network network = network_of({64}, {gelu});
    for (const DType dtype : {DType::fp64, DType::fp32}) {
      // |x|, |GELU| <= 1, its slope <= 1.13; a chain of 16 operations, of which one is a function
      // of the mathematics library.
      compare(network, dtype, 4, {roundings(24, dtype), roundings(32, dtype) * 1.13, 0});
    }
  }
}

TEST_CASE("layer norm agrees within its rounding, with and without weights") {
  constexpr double n = 24;
  constexpr double rows = 4 * 3;
  for (const bool affine : {true, false}) {
    const Network network = network_of(
        {3, 24}, {layer("LayerNorm", {{"", int64_t{24}}, {"elementwise_affine", affine}})});
    for (const DType dtype : {DType::fp64, DType::fp32}) {
      // The variance of 24 uniform numbers in [-1, 1) is 1/3 on average; none is below 0.1.
      compare(network, dtype, 4, layer_norm_bounds(n, rows, 0.1, dtype));
    }
  }
}

TEST_CASE("self-attention agrees within its rounding, causal or not, with and without biases") {
  for (const char* kind : {"MultiheadAttention", "CausalSelfAttention"}) {
    for (const bool bias : {true, false}) {
      const Network network = network_of(
          {5, 6}, {layer(kind, {positional(6), positional(2), {"dropout", 0.0}, {"bias", bias}})});
      for (const DType dtype : {DType::fp64, DType::fp32}) {
        INFO(kind << (bias ? " with" : " without") << " bias");
        compare(network, dtype, 3, attention_bounds(6, 3, 5, 3, dtype));
      }
    }
  }
}

TEST_CASE("dropout passes on in evaluation what it would drop in training") {
  const Network network = network_of({4}, {layer("Dropout", {{"", 0.5}})});
  for (const Execute& execute : {reference(), libtorch()}) {
    Memory memory;
    const Slice input = memory.add(Values::of(DType::fp32, {1, -2, 3, 4}));
    const Slice output = memory.add(Values(DType::fp32, 4));
    run_kernel(execute, memory, Kernel::layer_forward, {input}, {output}, {1, 0}, &network);
    CHECK(memory.load(output) == Values::of(DType::fp32, {1, -2, 3, 4}));
  }
}

}  // namespace lockstep::libtorch_test::reference_transformer_test
