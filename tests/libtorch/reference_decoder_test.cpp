// Layers of decoders and vision transformers, and LSTM: the simulator's numbers are LibTorch's,
// forward and backward.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/libtorch/layer_case.hpp"

namespace lockstep::libtorch_test::reference_decoder_test {

namespace {

constexpr NamedArgument positional(int64_t value) { return {"", value}; }

/// A chain of at most some dozen sums of at most some dozen numbers: below 2000 units of roundoff
/// of the greatest number on the way.
void check_within(const LayerResult& ours, const LayerResult& theirs, DType dtype) {
  const auto most = [&](const Values& exact) {
    return 2000 * unit_roundoff(dtype) * std::max(1.0, greatest(exact));
  };
  CHECK(distance(ours.output, theirs.output) <= most(theirs.output));
  CHECK(distance(ours.input_gradient, theirs.input_gradient) <= most(theirs.input_gradient));
  REQUIRE(ours.gradients.size() == theirs.gradients.size());
  for (size_t i = 0; i < ours.gradients.size(); ++i) {
    INFO("parameter " << i);
    CHECK(distance(ours.gradients[i], theirs.gradients[i]) <= most(theirs.gradients[i]));
    CHECK(greatest(theirs.gradients[i]) > 0);
  }
}

void compare(const Network& network) {
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    INFO(name_of(network.layers[0].kind) << " " << name_of(dtype));
    const LayerValues values = values_for(network.layers[0], dtype, 3, reals);
    check_within(run_layer(libtorch(), network, 0, values),
                 run_layer(reference(), network, 0, values), dtype);
  }
}

void compare_exactly(const Network& network) {
  for (const DType dtype : {DType::fp64, DType::fp32, DType::bf16, DType::fp16}) {
    INFO(name_of(network.layers[0].kind) << " " << name_of(dtype));
    const LayerValues values = values_for(network.layers[0], dtype, 2, integers);
    CHECK(run_layer(libtorch(), network, 0, values) == run_layer(reference(), network, 0, values));
  }
}

/// Attention of 5 positions and 4 query heads, of width 4.
LayerDescription grouped(int64_t key_heads, int64_t window, bool bias, bool qkv_bias) {
  return layer("GroupedQueryAttention", {positional(6),
                                         positional(4),
                                         positional(key_heads),
                                         {"head_dim", int64_t{4}},
                                         {"rope_theta", 100.0},
                                         {"sliding_window", window},
                                         {"bias", bias},
                                         {"qkv_bias", qkv_bias}});
}

}  // namespace

TEST_CASE("rotary grouped-query attention agrees with LibTorch's, whatever heads and window") {
  for (const int64_t key_heads : {1, 2, 4}) {
    for (const int64_t window : {0, 2, 9}) {
      INFO(key_heads << " key heads, window " << window);
      compare(network_of({5, 6}, {grouped(key_heads, window, window == 0, window == 0)}));
      compare(network_of({5, 6}, {grouped(key_heads, window, false, true)}));
    }
  }
}

TEST_CASE("SwiGLU and LSTM agree with LibTorch's, with and without biases") {
  for (const bool bias : {true, false}) {
    INFO((bias ? "with" : "without") << " bias");
    compare(network_of({3, 4}, {layer("SwiGLU", {positional(4), positional(7), {"bias", bias}})}));
    compare(network_of({4}, {layer("SwiGLU", {positional(4), positional(5), {"bias", bias}})}));
    for (const int64_t levels : {1, 3}) {
      compare(network_of(
          {5, 3},
          {layer("LSTM", {positional(3), positional(4), positional(levels), {"bias", bias}})}));
    }
  }
}

TEST_CASE("mixtures of experts agree with LibTorch's, grouped or not, and with dropped tokens") {
  for (const char* expert : {"swiglu", "gelu", "relu"}) {
    for (const bool grouped : {false, true}) {
      INFO(expert << (grouped ? ", grouped" : ""));
      std::vector<NamedArgument> arguments{positional(4),
                                           positional(6),
                                           positional(4),
                                           positional(2),
                                           {"expert", std::string(expert)},
                                           {"grouped", grouped}};
      compare(network_of({5, 4}, {layer("MixtureOfExperts", arguments)}));
      arguments.push_back({"capacity_factor", 0.75});
      arguments.push_back({"norm_topk_prob", false});
      arguments.push_back({"aux_loss_coef", 0.25});
      compare(network_of({5, 4}, {layer("MixtureOfExperts", arguments)}));
    }
  }
}

TEST_CASE("normalised heads and the gate of GeGLU are LibTorch's") {
  LayerDescription attention = grouped(2, 0, true, true);
  attention.arguments.push_back({"qk_norm_eps", 1e-3});
  compare(network_of({5, 6}, {attention}));
  compare(network_of(
      {3, 4},
      {layer("SwiGLU", {positional(4), positional(6), {"activation", std::string("gelu_tanh")}})}));
}

TEST_CASE("layers that place elements agree with LibTorch's bit for bit") {
  compare_exactly(
      network_of({3, 2, 4}, {layer("Upsample", {{"scale_factor", std::vector<int64_t>{2, 3}}})}));
  compare_exactly(network_of({3, 2, 4}, {layer("PatchSequence", {positional(3)})}));
  compare_exactly(
      network_of({3, 2, 4}, {layer("PatchSequence", {positional(3), {"class_token", false}})}));
  compare_exactly(network_of({4, 3}, {layer("FirstPosition")}));
}

TEST_CASE("a Concatenate joins and parts samples as the reference does") {
  LayerDescription joined = layer("Concatenate");
  joined.layers = {layer("Conv2d", {positional(2), positional(3), positional(1)})};
  const Network network = network_of({2, 2, 2}, {joined});
  constexpr size_t begin = 0;
  constexpr size_t end = 2;
  REQUIRE(network.layers[end].kind == LayerKind::residual_concatenate);
  constexpr int64_t samples = 2;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    Memory results[2];
    Values outputs[2];
    int turn = 0;
    for (const Execute& execute : {reference(), libtorch()}) {
      Memory& memory = results[turn];
      const Slice branch = memory.add(integers(dtype, samples * 12, 1));
      const Slice remembered = memory.add(integers(dtype, samples * 8, 2));
      const Slice output = memory.add(Values(dtype, samples * 20));
      run_kernel(execute, memory, Kernel::layer_forward, {branch, remembered}, {output},
                 {samples, 1}, &network, end);
      const Slice branch_gradient = memory.add(Values(dtype, samples * 12));
      run_kernel(execute, memory, Kernel::layer_backward, {output, branch}, {branch_gradient},
                 {samples}, &network, end);
      CHECK(memory.load(branch_gradient) == memory.load(branch));
      const Slice own = memory.add(integers(dtype, samples * 8, 3));
      const Slice sum = memory.add(Values(dtype, samples * 8));
      run_kernel(execute, memory, Kernel::layer_backward, {own, remembered, output}, {sum},
                 {samples}, &network, begin);
      const Values first = memory.load(own);
      const Values second = memory.load(remembered);
      for (int64_t i = 0; i < first.size(); ++i) {
        CHECK(memory.load(sum).number(i) == first.number(i) + second.number(i));
      }
      outputs[turn++] = memory.load(output);
    }
    CHECK(outputs[0] == outputs[1]);
    CHECK(outputs[0].slice(0, 8) == results[0].load(Slice{BufferId{2}, dtype, 0, 8}));
  }
}

}  // namespace lockstep::libtorch_test::reference_decoder_test
