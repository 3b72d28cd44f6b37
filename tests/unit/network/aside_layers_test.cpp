// Aside, the attention that reads it, and T5.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "model/network/arithmetic/aside_attention.hpp"
#include "model/network/build.hpp"
#include "model/network/presets.hpp"
#include "model/network/relative_buckets.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace aside_layers_test {

namespace {

LayerDescription described(std::string kind, std::vector<NamedArgument> arguments = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

LayerDescription aside_of(std::vector<LayerDescription> of, std::vector<LayerDescription> layers,
                          std::string name = "") {
  LayerDescription aside = described("Aside", {{"as", std::move(name)}});
  aside.shortcut = std::move(of);
  aside.layers = std::move(layers);
  return aside;
}

BuildResult built_beside(Shape input, std::vector<LayerDescription> layers) {
  return build_network(
      {.input = std::move(input), .layers = std::move(layers), .loss = {.kind = "MSELoss"}});
}

NetworkError first_error(const BuildResult& result) {
  REQUIRE(result.errors.size() == 1);
  return result.errors.front();
}

const LayerDescription cross =
    described("CrossAttention", {{"embed_dim", int64_t{4}}, {"num_heads", int64_t{2}}});

Network pair_of(std::string_view name) {
  const auto description = describe_preset(name, {});
  REQUIRE(std::holds_alternative<NetworkDescription>(description));
  BuildResult result = build_network(std::get<NetworkDescription>(description));
  for (const NetworkError& error : result.errors) {
    FAIL(error.path << ": " << error.message);
  }
  return result.network;
}

Values wave(int64_t elements, double step) {
  Values values(DType::fp64, elements);
  for (int64_t i = 0; i < elements; ++i) {
    values.set(i, std::sin(step * static_cast<double>(i + 1)));
  }
  return values;
}

}  // namespace

TEST_CASE("T5 has the published number of parameters") {
  // num_parameters() of transformers' T5ForConditionalGeneration. By hand for width d, h heads of
  // width k, feed-forward f and L layers each: 32128 d of the embedding; 32 h of bias in each
  // stack; an encoder block 4 d h k + 2 d f + 2 d, a decoder block 8 d h k + 2 d f + 3 d; 2 d of
  // last norms.
  const auto by_hand = [](int64_t l, int64_t h, int64_t d, int64_t k, int64_t f) {
    return 32128 * d + 64 * h + l * (12 * d * h * k + 4 * d * f + 5 * d) + 2 * d;
  };
  CHECK(by_hand(6, 8, 512, 64, 2048) == 60'506'624);
  CHECK(pair_of("t5-small").parameter_elements() == 60'506'624);
  CHECK(pair_of("t5-base").parameter_elements() == 222'903'552);
  CHECK(pair_of("t5-large").parameter_elements() == 737'668'096);
  CHECK(pair_of("t5-3b").parameter_elements() == by_hand(24, 32, 1024, 128, 16384));
  CHECK(pair_of("t5-3b").parameter_elements() == 2'851'598'336);
  CHECK(pair_of("t5-11b").parameter_elements() == by_hand(24, 128, 1024, 128, 65536));
  CHECK(pair_of("t5-11b").parameter_elements() == 11'307'321'344);
}

TEST_CASE("BART has the published number of parameters") {
  // num_parameters() of transformers' BartForConditionalGeneration. By hand for width d,
  // feed-forward f and L layers each: (50265 + 2 * 1026 + 4) d of embeddings and their norms; an
  // encoder block 4 (d^2 + d) + 2 d f + f + d + 4 d, a decoder block 8 (d^2 + d) + 2 d f + f + d +
  // 6 d.
  const auto by_hand = [](int64_t l, int64_t d, int64_t f) {
    return (50265 + 2 * 1026 + 4) * d + l * (12 * (d * d + d) + 2 * (2 * d * f + f + d) + 10 * d);
  };
  CHECK(by_hand(6, 768, 3072) == 139'420'416);
  CHECK(pair_of("bart-base").parameter_elements() == 139'420'416);
  CHECK(pair_of("bart-large").parameter_elements() == by_hand(12, 1024, 4096));
  CHECK(pair_of("bart-large").parameter_elements() == 406'291'456);
  CHECK(pair_of("bart-base").input == Shape{2048});
}

TEST_CASE("T5's work is that of its products") {
  // s source and t target tokens: an encoder block 8 s d w + 4 s d f + 4 s^2 w, a decoder block
  // 8 t d w + 4 t d f + 4 t^2 w and 4 (t + s) d w + 4 t s w across; the head 2 t d V.
  constexpr int64_t s = 512;
  constexpr int64_t t = 114;
  constexpr int64_t d = 512;
  constexpr int64_t w = 8 * 64;
  constexpr int64_t f = 2048;
  constexpr int64_t encoder = 8 * s * d * w + 4 * s * d * f + 4 * s * s * w;
  constexpr int64_t decoder =
      8 * t * d * w + 4 * t * d * f + 4 * t * t * w + 4 * (t + s) * d * w + 4 * t * s * w;
  CHECK(pair_of("t5-small").forward_flops() == Flops(6 * (encoder + decoder) + 2 * t * d * 32128));
}

TEST_CASE("T5's parameters are named as in transformers, and the head is the embedding") {
  const Network network = pair_of("t5-small");
  std::vector<std::string> names;
  for (const ParameterPlace place : network.parameters()) {
    names.push_back(network.parameter_name(place));
  }
  for (const char* name :
       {"shared.weight", "encoder.block.0.layer.0.SelfAttention.q.weight",
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
        "decoder.block.5.layer.1.EncDecAttention.v.weight",
        "decoder.block.5.layer.2.DenseReluDense.wo.weight", "decoder.final_layer_norm.weight"}) {
    INFO(name);
    CHECK(std::ranges::count(names, name) == 1);
  }
  CHECK(network.layers.back().tied_layer == 0);
  CHECK(network.layers.back().output == Shape{114, 32128});
  CHECK(network.input == Shape{512 + 114});
}

TEST_CASE("distances fall into the buckets of T5") {
  // Written out from the paper's description: exact up to half of a direction's buckets, then
  // logarithmic up to max_distance, where everything beyond shares the last one.
  const RelativePositionBiasArguments both{.num_heads = 1};
  CHECK(relative_bucket(both, 0, 0) == 0);
  CHECK(relative_bucket(both, 7, 0) == 7);
  CHECK(relative_bucket(both, 0, 7) == 16 + 7);
  CHECK(relative_bucket(both, 8, 0) == 8);
  CHECK(relative_bucket(both, 16, 0) == 10);  // 8 + 8 log(2) / log(16)
  CHECK(relative_bucket(both, 32, 0) == 12);
  CHECK(relative_bucket(both, 127, 0) == 15);
  CHECK(relative_bucket(both, 500, 0) == 15);
  const RelativePositionBiasArguments causal{.num_heads = 1, .bidirectional = false};
  CHECK(relative_bucket(causal, 0, 5) == 0);
  CHECK(relative_bucket(causal, 15, 0) == 15);
  CHECK(relative_bucket(causal, 16, 0) == 16);
  CHECK(relative_bucket(causal, 500, 0) == 31);
}

TEST_CASE("what is put aside is kept once for all its readers") {
  // Both attentions read the Linear's output (6 x 4), which is kept once; each keeps its input (the
  // first the batch), query and sum (6 x 4 each), key and value, and the logarithms of 6 x 2 rows.
  const LayerDescription linear = described("Linear", {{"", int64_t{4}}, {"", int64_t{4}}});
  const BuildResult twice = built_beside({6, 4}, {aside_of({linear}, {cross, cross})});
  REQUIRE(twice.ok());
  const std::vector<Layer>& layers = twice.network.layers;
  CHECK(layers.front().kind == LayerKind::residual_begin);
  CHECK(layers.back().kind == LayerKind::aside_end);
  const Layer* second = &layers[layers.size() - 2];
  CHECK(second->aside->begin == 0);
  CHECK(second->aside->shape == Shape{6, 4});
  Bytes kept{};
  for (const Layer& layer : layers) {
    kept += layer.activation_bytes(DType::fp32);
  }
  const Bytes state = 4_B * 24;
  CHECK(kept == state + 2 * (4 * state + 4_B * 12) + 2 * state);
}

TEST_CASE("an Aside is read by name, or the innermost one is") {
  const LayerDescription bias = described("RelativePositionBias", {{"num_heads", int64_t{2}}});
  const auto attention = [](std::string aside) {
    return described(
        "BiasedAttention",
        {{"embed_dim", int64_t{4}}, {"num_heads", int64_t{2}}, {"aside", std::move(aside)}});
  };
  LayerDescription outer = cross;
  outer.arguments.push_back({"aside", std::string("memory")});
  const BuildResult nested = built_beside(
      {6, 4}, {aside_of({described("Identity")}, {aside_of({bias}, {attention(""), outer}, "bias")},
                        "memory")});
  REQUIRE(nested.ok());
  const auto reader =
      std::ranges::find(nested.network.layers, LayerKind::cross_attention, &Layer::kind);
  CHECK(reader->aside->begin == 0);
  CHECK(first_error(built_beside({6, 4}, {cross})).message == "CrossAttention stands in no Aside");
  CHECK(
      first_error(built_beside({6, 4}, {aside_of({bias}, {attention("other")}, "bias")})).message ==
      "no Aside around BiasedAttention is called `other`");
  CHECK(first_error(built_beside({6, 4}, {aside_of({bias}, {described("Identity")})})).message ==
        "no layer reads what this Aside makes");
  CHECK(first_error(built_beside({6, 4}, {aside_of({bias}, {cross})})).message ==
        "CrossAttention reads [positions, features], not [2, 6, 6]");
  CHECK(first_error(built_beside({6, 4}, {aside_of({described("Identity")}, {attention("")})}))
            .message == "the bias of 2 heads over 6 positions has shape [2, 6, 6], not [6, 4]");
}

namespace {

/// Two samples of 3 queries, with 2 keys of another tensor or with 3 of their own, a bias and a
/// causal mask.
struct BesideCase {
  bool is_cross = false;
  AsideAttentionShape shape{};
  std::vector<Values> tensors{};  ///< weights and biases in turns

  explicit BesideCase(bool crosses) : is_cross(crosses) {
    const int64_t source = crosses ? 5 : 4;
    shape = {{.embed_dim = 4,
              .num_heads = 2,
              .head_dim = 3,
              .source_dim = source,
              .causal = !crosses,
              .scaled = crosses,
              .bias = true},
             2,
             3,
             crosses ? 2 : 3};
    for (const int64_t elements : {int64_t{24}, int64_t{6}, 6 * source, int64_t{6}, 6 * source,
                                   int64_t{6}, int64_t{24}, int64_t{4}}) {
      tensors.push_back(wave(elements, 0.21 + 0.1 * static_cast<double>(tensors.size())));
    }
  }

  AsideOperands operands(const Values& input, const Values& beside) const {
    return {is_cross ? beside : input, is_cross ? nullptr : &beside};
  }
  static AsideWeights weights(const std::vector<Values>& of) {
    AsideWeights set;
    for (size_t i = 0; i < aside_products; ++i) {
      set.weight[i] = &of[2 * i];
      set.bias[i] = &of[2 * i + 1];
    }
    return set;
  }
  static AsideWeightGradients gradients(std::vector<Values>& of) {
    AsideWeightGradients set;
    for (size_t i = 0; i < aside_products; ++i) {
      set.weight[i] = &of[2 * i];
      set.bias[i] = &of[2 * i + 1];
    }
    return set;
  }
};

}  // namespace

TEST_CASE("attention beside another tensor has the gradients of central differences") {
  for (const bool is_cross : {true, false}) {
    const BesideCase at(is_cross);
    const Values input = wave(24, 0.37);
    const Values beside = is_cross ? wave(20, 0.91) : wave(36, 0.53);
    const Values factor = wave(input.size(), 0.17);
    const auto loss = [&](const Values& x, const Values& y, const std::vector<Values>& of) {
      Values output(DType::fp64, x.size());
      aside_attention_forward(x, at.operands(x, y), BesideCase::weights(of), at.shape, output);
      return dot(output, factor);
    };
    std::vector<Values> found;
    for (const Values& tensor : at.tensors) {
      found.emplace_back(DType::fp64, tensor.size());
    }
    Values input_gradient(DType::fp64, input.size());
    Values beside_gradient(DType::fp64, beside.size());
    AsideGradients gradients{.input = &input_gradient};
    (is_cross ? gradients.source : gradients.bias) = &beside_gradient;
    gradients.weights = BesideCase::gradients(found);
    aside_attention_backward(input, at.operands(input, beside), BesideCase::weights(at.tensors),
                             factor, at.shape, gradients);
    constexpr double step = 1e-5;
    constexpr double tolerance = 1e-8;
    check_gradient(input, input_gradient, step, tolerance,
                   [&](const Values& x) { return loss(x, beside, at.tensors); });
    check_gradient(beside, beside_gradient, step, tolerance,
                   [&](const Values& y) { return loss(input, y, at.tensors); });
    for (size_t i = 0; i < at.tensors.size(); ++i) {
      INFO("parameter " << i);
      check_gradient(at.tensors[i], found[i], step, tolerance, [&](const Values& changed) {
        std::vector<Values> moved = at.tensors;
        moved[i] = changed;
        return loss(input, beside, moved);
      });
    }
  }
}

}  // namespace aside_layers_test
