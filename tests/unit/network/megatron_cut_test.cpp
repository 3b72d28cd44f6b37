// What Megatron-LM's tensor ranks have of a GPT.
#include <catch2/catch.hpp>

#include "model/network/presets.hpp"
#include "model/network/tensor_parallel/cut_network.hpp"

using namespace lockstep;

namespace megatron_cut_test {

namespace {

/// GPT-2 medium: width 1024, 16 heads, 24 layers; 1024 positions.
Network gpt(int64_t vocabulary) {
  auto description =
      std::get<NetworkDescription>(describe_preset("gpt2-medium", {{"vocab_size", vocabulary}}));
  description.flash_attention = false;
  BuildResult built = build_network(description);
  REQUIRE(built.ok());
  return built.network;
}

Bytes kept_by_block(const Network& network) {
  Bytes block;
  for (const Layer& layer : network.layers) {
    if (layer.name.starts_with("transformer.h.5.")) {
      block += layer.activation_bytes(DType::bf16);
    }
  }
  return block;
}

constexpr int64_t s = 1024;
constexpr int64_t h = 1024;
constexpr int64_t a = 16;

}  // namespace

TEST_CASE("a cut GPT has the whole one's parameters, under their names and in their order") {
  const Network whole = gpt(51200);
  const CutNetwork cut = cut_as_megatron(whole, 4, true);
  INFO(cut.where << ": " << cut.why_not);
  REQUIRE(cut.why_not.empty());
  const std::vector<ParameterPlace> parts = cut.network.parameters();
  const std::vector<ParameterPlace> wholes = whole.parameters();
  REQUIRE(parts.size() == wholes.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    INFO(whole.parameter_name(wholes[i]));
    CHECK(cut.network.parameter_name(parts[i]) == whole.parameter_name(wholes[i]));
    const ParameterTensor& part = cut.network.parameter(parts[i]);
    CHECK((part.cut ? part.cut->whole : part.shape) == whole.parameter(wholes[i]).shape);
    CHECK(part.elements() * (part.cut ? 4 : 1) == whole.parameter(wholes[i]).elements());
  }
}

TEST_CASE("query, key and value are cut each by itself, and biases behind sums are whole") {
  const CutNetwork cut = cut_as_megatron(gpt(51200), 4, false);
  for (const ParameterPlace place : cut.network.parameters()) {
    const std::string name = cut.network.parameter_name(place);
    const ParameterTensor& tensor = cut.network.parameter(place);
    if (name == "transformer.h.0.attn.c_attn.weight") {
      CHECK(tensor.shape == Shape{3 * h / 4, h});
      CHECK(tensor.cut->sections == 3);
    } else if (name == "transformer.h.0.attn.c_proj.weight") {
      CHECK(tensor.shape == Shape{h, h / 4});
    } else if (name == "transformer.h.0.attn.c_proj.bias" ||
               name == "transformer.h.0.mlp.c_proj.bias") {
      CHECK_FALSE(tensor.cut.has_value());
      CHECK_FALSE(tensor.gradient_is_partial);
    } else if (name == "transformer.wte.weight") {
      CHECK(tensor.shape == Shape{51200 / 4, h});
    }
  }
  const auto& loss = std::get<LossArguments>(cut.network.loss.arguments);
  CHECK(loss.parts == 4);
  CHECK(cut.network.loss.input == Shape{s, 51200 / 4});
}

// Korthikanti et al. 2022, table 2: s b h (10 + 24 / t + 5 a s / (h t)). The fp32 statistics of two
// norms, 8 bytes a position each, are left out there; the two residual sums (2 s h bytes each)
// stand outside of the block's name.
TEST_CASE("a tensor rank keeps the published activations") {
  for (const int32_t t : {2, 4, 8}) {
    const Network network = cut_as_megatron(gpt(51200), t, false).network;
    CHECK(kept_by_block(network) ==
          Bytes(s * h * 10 + 24 * s * h / t + 5 * a * s * s / t + 16 * s - 2 * 2 * s * h));
  }
}

// The same with sequence parallelism: s b h (34 / t + 5 a s / (h t)). What attention and the
// feed-forward gather, 2 s h bytes each, is kept whole here; Megatron-LM gathers it once more in
// the backward.
TEST_CASE("a rank of sequence parallelism keeps the published activations and what it gathers") {
  for (const int32_t t : {2, 4, 8}) {
    const Network network = cut_as_megatron(gpt(51200), t, true).network;
    const int64_t published = 34 * s * h / t + 5 * a * s * s / t + 16 * s / t - 2 * 2 * s * h / t;
    CHECK(kept_by_block(network) == Bytes(published + 2 * (2 * s * h - 2 * s * h / t)));
  }
}

TEST_CASE("parts have the operations of the whole") {
  const Network whole = gpt(51200);
  CHECK(cut_as_megatron(whole, 4, true).network.forward_flops() * 4 == whole.forward_flops());
  CHECK(cut_as_megatron(whole, 4, true).network.backward_flops() * 4 == whole.backward_flops());
}

TEST_CASE("sizes that tensor ranks do not divide are refused with the module") {
  const CutNetwork vocabulary = cut_as_megatron(gpt(50257), 4, false);
  CHECK(vocabulary.where == "transformer.wte");
  CHECK(vocabulary.remedy.find("50688") != std::string::npos);  // 99 x 512
  const CutNetwork heads = cut_as_megatron(gpt(51200), 32, false);
  CHECK(heads.why_not.find("16 heads") != std::string::npos);
}

}  // namespace megatron_cut_test
