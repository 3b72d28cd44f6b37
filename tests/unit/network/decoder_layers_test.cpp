// Grouped-query attention with its rotary embedding, SwiGLU and LSTM.
#include <catch2/catch.hpp>
#include <cmath>

#include "model/core/random.hpp"
#include "model/network/arithmetic/grouped_attention.hpp"
#include "model/network/arithmetic/lstm.hpp"
#include "model/network/arithmetic/swiglu.hpp"
#include "model/network/build.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace decoder_layers_test {

namespace {

constexpr double step = 1e-4;
constexpr double tolerance = 1e-6;

Values drawn(int64_t elements, uint64_t key) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, 2 * random_unit(key, static_cast<uint64_t>(i)) - 1);
  }
  return values;
}

void check_close(const Values& values, std::initializer_list<double> expected) {
  REQUIRE(values.size() == static_cast<int64_t>(expected.size()));
  int64_t i = 0;
  for (const double number : expected) {
    CHECK(values.number(i++) == Approx(number).margin(1e-12));
  }
}

/// The forward of operands, the first of which is the input.
using OperandForward = std::function<Values(const std::vector<Values>&)>;

void check_slopes(const std::vector<Values>& at, const std::vector<Values>& gradients,
                  const Values& output_gradient, const OperandForward& forward) {
  for (size_t operand = 0; operand < at.size(); ++operand) {
    INFO("operand " << operand);
    check_gradient(at[operand], gradients[operand], step, tolerance, [&](const Values& changed) {
      std::vector<Values> values = at;
      values[operand] = changed;
      return dot(forward(values), output_gradient);
    });
  }
}

std::vector<Values> zeros_like(const std::vector<Values>& at) {
  std::vector<Values> zeros;
  for (const Values& values : at) {
    zeros.emplace_back(values.dtype(), values.size());
  }
  return zeros;
}

BuildResult built(Shape input, LayerDescription layer, bool flash = true) {
  return build_network({.input = std::move(input),
                        .flash_attention = flash,
                        .layers = {std::move(layer)},
                        .loss = {.kind = "MSELoss"}});
}

LayerDescription grouped(std::vector<NamedArgument> arguments) {
  return {.kind = "GroupedQueryAttention", .arguments = std::move(arguments)};
}

constexpr NamedArgument of(int64_t value) { return {"", value}; }

}  // namespace

TEST_CASE("a rotary embedding turns pairs of a head by the position") {
  // Width 4, theta 100: pairs (0, 2) and (1, 3) turn by p and p / 10. Position 0 stays.
  const GroupedAttentionShape shape{.batch = 1, .positions = 3, .head_width = 4, .theta = 100};
  Values states = fp64({1, 2, 3, 4, 1, 0, 0, 0, 0, 0, 0, 1});
  rotate_heads(shape, 1, false, states);
  check_close(states,
              {1, 2, 3, 4, std::cos(1), 0, std::sin(1), 0, 0, -std::sin(0.2), 0, std::cos(0.2)});
  rotate_heads(shape, 1, true, states);
  check_close(states, {1, 2, 3, 4, 1, 0, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("query heads share a key head, and no position sees a later one") {
  // Width 2, two query heads and one key head of width 2; queries are 0, so that each position
  // takes the mean of the values up to itself: x, then the mean of both.
  const GroupedAttentionShape shape{
      .batch = 1, .positions = 2, .embed = 2, .heads = 2, .key_heads = 1, .head_width = 2};
  const Values nothing(DType::fp64, 8);
  const Values key = drawn(4, 1);
  const Values value = fp64({1, 0, 0, 1});
  const Values sum_of_heads = fp64({1, 0, 10, 0, 0, 1, 0, 10});
  const GroupedAttentionWeights weights{{&nothing, &key, &value, &sum_of_heads}, {}};
  Values output(DType::fp64, 4);
  grouped_attention_forward(fp64({1, 2, 3, 6}), weights, shape, output);
  check_close(output, {11, 22, 22, 44});
  // A window of one position: each sees itself alone.
  GroupedAttentionShape narrow = shape;
  narrow.window = 1;
  grouped_attention_forward(fp64({1, 2, 3, 6}), weights, narrow, output);
  check_close(output, {11, 22, 33, 66});
}

TEST_CASE("scores depend on the distance of two positions alone") {
  // The rotation's purpose (Su et al. 2021): with equal inputs everywhere, position 2 weighs its
  // two predecessors as position 1 weighs its own, apart from the third that it sees.
  const GroupedAttentionShape shape{
      .batch = 1, .positions = 4, .embed = 4, .heads = 1, .key_heads = 1, .head_width = 4};
  Values query = fp64({1, 2, 3, 4});
  Values turned(DType::fp64, 16);
  for (int64_t i = 0; i < 16; ++i) {
    turned.set(i, query.number(i % 4));
  }
  rotate_heads(shape, 1, false, turned);
  const auto score = [&](int64_t a, int64_t b) {
    return dot(turned.slice(4 * a, 4), turned.slice(4 * b, 4));
  };
  CHECK(score(1, 0) == Approx(score(3, 2)));
  CHECK(score(2, 0) == Approx(score(3, 1)));
  CHECK(score(2, 0) != Approx(score(1, 0)));
}

TEST_CASE("grouped-query attention's gradients are slopes, with biases and a window") {
  for (const int64_t window : {0, 2}) {
    const GroupedAttentionShape shape{2, 3, 4, 4, 2, 2, 100, window};
    const std::vector<Values> at = {drawn(24, 1), drawn(32, 2), drawn(8, 3),
                                    drawn(16, 4), drawn(4, 5),  drawn(16, 6),
                                    drawn(4, 7),  drawn(32, 8), drawn(4, 9)};
    const Values output_gradient = drawn(24, 10);
    const auto weights = [](const std::vector<Values>& v) {
      return GroupedAttentionWeights{{&v[1], &v[3], &v[5], &v[7]}, {&v[2], &v[4], &v[6], &v[8]}};
    };
    std::vector<Values> g = zeros_like(at);
    grouped_attention_backward(at[0], weights(at), output_gradient, shape, g.data(),
                               {{&g[1], &g[3], &g[5], &g[7]}, {&g[2], &g[4], &g[6], &g[8]}});
    check_slopes(at, g, output_gradient, [&](const std::vector<Values>& values) {
      Values output(DType::fp64, 24);
      grouped_attention_forward(values[0], weights(values), shape, output);
      return output;
    });
  }
}

TEST_CASE("norms of the heads of query and key have gradients that are slopes") {
  GroupedAttentionShape shape{2, 3, 4, 4, 2, 2, 100, 0};
  shape.norm_eps = 1e-3;
  const std::vector<Values> at = {drawn(24, 1), drawn(32, 2), drawn(16, 4), drawn(16, 6),
                                  drawn(32, 8), drawn(2, 11), drawn(2, 12)};
  const Values output_gradient = drawn(24, 10);
  const auto weights = [](const std::vector<Values>& v) {
    return GroupedAttentionWeights{{&v[1], &v[2], &v[3], &v[4]}, {}, {&v[5], &v[6]}};
  };
  std::vector<Values> g = zeros_like(at);
  grouped_attention_backward(at[0], weights(at), output_gradient, shape, g.data(),
                             {{&g[1], &g[2], &g[3], &g[4]}, {}, {&g[5], &g[6]}});
  check_slopes(at, g, output_gradient, [&](const std::vector<Values>& values) {
    Values output(DType::fp64, 24);
    grouped_attention_forward(values[0], weights(values), shape, output);
    return output;
  });
}

TEST_CASE("head norms have a weight for each number of a head, and keep what they read") {
  // As below: 4 query heads and 2 key heads of width 2 over 3 positions; 2 weights each; query and
  // key before the norm are 24 + 12 more, with the fp32 root mean square of 12 + 6 heads.
  const BuildResult normed = built({3, 8}, grouped({of(8), of(4), of(2), {"qk_norm_eps", 1e-6}}));
  REQUIRE(normed.ok());
  const Layer& layer = normed.network.layers[0];
  CHECK(layer.parameter_elements() == 64 + 2 * 32 + 64 + 2 + 2);
  CHECK(layer.parameters.back().name == "k_norm.weight");
  CHECK(layer.saves.elements == 72 + 36);
  CHECK(layer.saves.fixed == 48_B + 4_B * 18);
}

TEST_CASE("GeGLU opens its gate by the tanh approximation of GELU, and its gradients are slopes") {
  // gate 2, up 3, down 5 of x = 1: 5 * 3 * gelu(2), 1 + tanh(sqrt(2 / pi) (2 + 0.044715 * 8)).
  const Values two = fp64({2});
  const Values three = fp64({3});
  const Values five = fp64({5});
  Values one(DType::fp64, 1);
  swiglu_forward(fp64({1}), {{&two, &three, &five}, {}}, {1, 1, 1, true}, one);
  const double inner = std::sqrt(2 / std::acos(-1.0)) * (2 + 0.044715 * 8);
  check_close(one, {5 * 3 * (1 + std::tanh(inner))});
  const SwigluShape shape{3, 2, 4, true};
  const std::vector<Values> at = {drawn(6, 1), drawn(8, 2), drawn(8, 4), drawn(8, 6)};
  const Values output_gradient = drawn(6, 8);
  const auto weights = [](const std::vector<Values>& v) {
    return SwigluWeights{{&v[1], &v[2], &v[3]}, {}};
  };
  std::vector<Values> g = zeros_like(at);
  swiglu_backward(at[0], weights(at), output_gradient, shape, g.data(),
                  {{&g[1], &g[2], &g[3]}, {}});
  check_slopes(at, g, output_gradient, [&](const std::vector<Values>& values) {
    Values output(DType::fp64, 6);
    swiglu_forward(values[0], weights(values), shape, output);
    return output;
  });
}

TEST_CASE("SwiGLU is down(silu(gate x) * up x), and its gradients are slopes") {
  // One row, widths 1: gate 2, up 3, down 5 of x = 1: 5 * silu(2) * 3.
  const Values two = fp64({2});
  const Values three = fp64({3});
  const Values five = fp64({5});
  Values one(DType::fp64, 1);
  swiglu_forward(fp64({1}), {{&two, &three, &five}, {}}, {1, 1, 1}, one);
  check_close(one, {5 * 3 * 2 / (1 + std::exp(-2.0))});

  const SwigluShape shape{3, 2, 4};
  const std::vector<Values> at = {drawn(6, 1), drawn(8, 2), drawn(4, 3), drawn(8, 4),
                                  drawn(4, 5), drawn(8, 6), drawn(2, 7)};
  const Values output_gradient = drawn(6, 8);
  const auto weights = [](const std::vector<Values>& v) {
    return SwigluWeights{{&v[1], &v[3], &v[5]}, {&v[2], &v[4], &v[6]}};
  };
  std::vector<Values> g = zeros_like(at);
  swiglu_backward(at[0], weights(at), output_gradient, shape, g.data(),
                  {{&g[1], &g[3], &g[5]}, {&g[2], &g[4], &g[6]}});
  check_slopes(at, g, output_gradient, [&](const std::vector<Values>& values) {
    Values output(DType::fp64, 6);
    swiglu_forward(values[0], weights(values), shape, output);
    return output;
  });
}

TEST_CASE("an LSTM's cell forgets and takes in as its gates say") {
  // One unit, no input weights: i = f = o = sigma(0) = 1/2 and g = tanh(b) by its bias alone.
  const Values input_weight(DType::fp64, 4);
  const Values state_weight(DType::fp64, 4);
  const Values bias = fp64({0, 0, 1, 0});
  Values output(DType::fp64, 2);
  lstm_forward(fp64({7, 7}), {&input_weight, &state_weight, &bias, nullptr}, {1, 2, 1, 1}, output);
  const double g = std::tanh(1.0);
  const double first = g / 2;
  const double second = first / 2 + g / 2;
  check_close(output, {std::tanh(first) / 2, std::tanh(second) / 2});
}

TEST_CASE("an LSTM's gradients are slopes, through time") {
  const LstmShape shape{2, 3, 2, 3};
  const std::vector<Values> at = {drawn(12, 1), drawn(24, 2), drawn(36, 3), drawn(12, 4),
                                  drawn(12, 5)};
  const Values output_gradient = drawn(18, 6);
  const auto weights = [](const std::vector<Values>& v) {
    return LstmWeights{&v[1], &v[2], &v[3], &v[4]};
  };
  std::vector<Values> g = zeros_like(at);
  lstm_backward(at[0], weights(at), output_gradient, shape, g.data(), {&g[1], &g[2], &g[3], &g[4]});
  check_slopes(at, g, output_gradient, [&](const std::vector<Values>& values) {
    Values output(DType::fp64, 18);
    lstm_forward(values[0], weights(values), shape, output);
    return output;
  });
}

TEST_CASE("grouped-query attention has Llama's parameters, FLOPs and kept tensors") {
  // Width 8, 4 query heads and 2 key heads of width 2, 3 positions: 8 x 8 + 2 * 4 x 8 + 8 x 8.
  const BuildResult result = built({3, 8}, grouped({of(8), of(4), of(2)}));
  REQUIRE(result.ok());
  const Layer& layer = result.network.layers[0];
  CHECK(layer.parameters[0].name == "q_proj.weight");
  CHECK(layer.parameters[1].shape == Shape{4, 8});
  CHECK(layer.parameters[3].shape == Shape{8, 8});
  CHECK(layer.parameter_elements() == 64 + 2 * 32 + 64);
  // 2 * 3 positions times each weight; scores and sum 4 * 3 * 3 * 8.
  CHECK(layer.work_of(Pass::forward).flops == Flops(2 * 3 * 192 + 4 * 3 * 3 * 8));
  // Query 24, key 12, value 12 and sum 24; fp32 log-sum of 4 heads and 3 positions.
  CHECK(layer.saves.input);
  CHECK(layer.saves.elements == 72);
  CHECK(layer.saves.fixed == 48_B);
  const BuildResult math = built({3, 8}, grouped({of(8), of(4), of(2)}), false);
  CHECK(math.network.layers[0].saves.elements == 72 + 4 * 3 * 3);
  // With as many key heads as heads it costs what CausalSelfAttention does.
  const BuildResult all = built({3, 8}, grouped({of(8), of(4)}));
  const BuildResult plain =
      built({3, 8}, {.kind = "CausalSelfAttention", .arguments = {of(8), of(4), {"bias", false}}});
  CHECK(all.network.forward_flops() == plain.network.forward_flops());
  CHECK(all.network.layers[0].saves.elements == plain.network.layers[0].saves.elements);
  // A window of 2 of 3 positions: 4 * 3 * 2 * 8.
  const BuildResult windowed =
      built({3, 8}, grouped({of(8), of(4), of(2), {"sliding_window", int64_t{2}}}));
  CHECK(windowed.network.forward_flops() == Flops(2 * 3 * 192 + 4 * 3 * 2 * 8));
}

TEST_CASE("heads that cannot be are refused with what would be right") {
  const auto message = [](std::vector<NamedArgument> arguments) {
    const BuildResult result = built({3, 8}, grouped(std::move(arguments)));
    REQUIRE(result.errors.size() == 1);
    return result.errors.front().message;
  };
  CHECK(message({of(6), of(2)}) == "embed_dim is 6, but the input has shape [3, 8]");
  CHECK(message({of(8), of(3)}) == "3 heads do not divide embed_dim 8");
  CHECK(message({of(8), of(4), of(3)}) == "num_kv_heads 3 does not divide num_heads 4");
  CHECK(message({of(8), of(8)}) == "head_dim is 1");
  CHECK(message({of(8), of(2), of(0)}) == "num_kv_heads is 0");
}

TEST_CASE("SwiGLU keeps the input and four tensors of its hidden width") {
  const BuildResult result = built({3, 8}, {.kind = "SwiGLU", .arguments = {of(8), of(24)}});
  REQUIRE(result.ok());
  const Layer& layer = result.network.layers[0];
  CHECK(layer.parameter_elements() == 3 * 8 * 24);
  CHECK(layer.work_of(Pass::forward).flops == Flops(2 * 3 * 3 * 8 * 24));
  CHECK(layer.saves.elements == 4 * 3 * 24);
  CHECK(built({3, 8}, {.kind = "SwiGLU", .arguments = {of(6), of(24)}}).errors.size() == 1);
}

TEST_CASE("an LSTM has torch's parameters, and what torch has beyond is refused") {
  // torch.nn.LSTM(8, 6, 2): 4 * 6 (8 + 6) + 2 * 24, and 4 * 6 (6 + 6) + 2 * 24.
  const BuildResult result = built({5, 8}, {.kind = "LSTM", .arguments = {of(8), of(6), of(2)}});
  REQUIRE(result.ok());
  const Layer& layer = result.network.layers[0];
  CHECK(layer.output == Shape{5, 6});
  CHECK(layer.parameter_elements() == 24 * 14 + 48 + 24 * 12 + 48);
  CHECK(layer.parameters[4].name == "weight_ih_l1");
  CHECK(layer.work_of(Pass::forward).flops == Flops(2 * 5 * (24 * 14 + 24 * 12)));
  CHECK(built({5, 8}, {.kind = "LSTM", .arguments = {of(8), of(6), {"bidirectional", true}}})
            .errors.front()
            .is_unmodelled);
}

}  // namespace decoder_layers_test
