#include "model/network/presets.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace {

Network preset(std::string_view name, const std::vector<NamedArgument>& arguments = {}) {
  const auto description = describe_preset(name, arguments);
  REQUIRE(std::holds_alternative<NetworkDescription>(description));
  BuildResult result = build_network(std::get<NetworkDescription>(description));
  for (const NetworkError& error : result.errors) {
    FAIL(error.path << ": " << error.message);
  }
  return result.network;
}

}  // namespace

TEST_CASE("preset networks have the published number of parameters") {
  CHECK(preset("mlp").parameter_elements() == 2242);
  CHECK(preset("resnet18").parameter_elements() == 11'689'512);
  CHECK(preset("resnet50").parameter_elements() == 25'557'032);
  CHECK(preset("gpt2").parameter_elements() == 124'439'808);
  CHECK(preset("gpt2-medium").parameter_elements() == 354'823'168);
  CHECK(preset("gpt2-large").parameter_elements() == 774'030'080);
  CHECK(preset("gpt2-xl").parameter_elements() == 1'557'611'200);
  // BERT of width d with L layers: (30522 + 512 + 2) d of embeddings and 2 d of their norm; each
  // layer 4 (d^2 + d) of attention, (4 d^2 + 4 d) + (4 d^2 + d) of the MLP and 4 d of two norms, so
  // 12 d^2 + 13 d; d^2 + d of the pooler. For d = 768, L = 12: 23,837,184 + 12 x 7,087,872 +
  // 590,592.
  CHECK(preset("bert-base").parameter_elements() == 109'482'240);
  CHECK(preset("bert-large").parameter_elements() == 335'141'888);
  // GPT-3: 12 L d^2 + 13 L d, and (50257 + 2048 + 2) d of embeddings and the last norm.
  CHECK(preset("gpt3-6.7b").parameter_elements() == 6658404352);
  CHECK(preset("gpt3-13b").parameter_elements() == 12853386240);
  CHECK(preset("gpt3-175b").parameter_elements() == 174604259328);
}

TEST_CASE("preset networks have the published parameter tensors and buffers") {
  const Network resnet = preset("resnet50");
  CHECK(preset("resnet18").parameters().size() == 62);
  CHECK(resnet.parameters().size() == 161);
  CHECK(resnet.parameter_name(resnet.parameters().front()) == "conv1.weight");
  CHECK(resnet.parameter_name(resnet.parameters()[12]) == "layer1.0.downsample.0.weight");
  CHECK(resnet.parameter_name(resnet.parameters().back()) == "fc.bias");
  // 53 batch norms: two fp32 vectors over 26,560 channels in all, and one int64 counter each.
  CHECK(resnet.buffer_bytes() == Bytes(2 * 26'560 * 4 + 53 * 8));
  CHECK(preset("gpt2").parameters().size() == 148);
  CHECK(preset("gpt2").parameter_name({2 + 2, 0}) == "transformer.h.0.ln_1.weight");
}

TEST_CASE("ResNet operations match the published multiply-adds") {
  // torchvision's model pages: 4.089 and 1.814 GFLOPS, where a multiply-add counts one.
  CHECK(static_cast<double>(preset("resnet50").forward_flops().count()) / 2e9 ==
        Approx(4.089).margin(0.0005));
  CHECK(static_cast<double>(preset("resnet18").forward_flops().count()) / 2e9 ==
        Approx(1.814).margin(0.0005));
}

TEST_CASE("GPT-2 operations match Narayanan's formula and the published count") {
  // 24 s h^2 + 4 s^2 h for each of 12 layers, 2 s h V for the head; nanoGPT's sizing notebook
  // publishes the same 291,648,307,200 for 124 M parameters at 1024 tokens.
  const int64_t s = 1024;
  const int64_t h = 768;
  const Network gpt = preset("gpt2");
  CHECK(gpt.forward_flops().count() == 12 * (24 * s * h * h + 4 * s * s * h) + 2 * s * h * 50257);
  CHECK(gpt.forward_flops() == Flops(291'648'307'200));
  CHECK(gpt.backward_flops() == gpt.forward_flops() * 2);
}

TEST_CASE("a tied head has no weight of its own and uses the embedding's") {
  const Network gpt = preset("gpt2");
  const Layer& head = gpt.layers.back();
  CHECK(head.parameters.empty());
  REQUIRE(head.tied_layer == 0);
  CHECK(head.weight_elements == 50257 * 768);
  CHECK(head.work_of(Pass::weight_gradient).runs);
}

TEST_CASE("a transformer layer keeps what Korthikanti et al. count") {
  // 16 bit, no flash attention, with dropout: s b h (34 + 5 a s / h) bytes per layer. The paper
  // leaves out the fp32 statistics of the two layer norms, 8 bytes a position each.
  auto description = std::get<NetworkDescription>(describe_preset("gpt2"));
  description.flash_attention = false;
  const Network network = build_network(description).network;
  const int64_t s = 1024;
  const int64_t h = 768;
  Bytes block;
  for (const Layer& layer : network.layers) {
    if (layer.name.starts_with("transformer.h.5.")) {
      block += layer.activation_bytes(DType::bf16);
    }
  }
  // The two residual sums stand outside of the block's name; each keeps 2 s h bytes for the layer
  // norm that follows.
  CHECK(block == Bytes(s * h * 34 + 5 * 12 * s * s + 16 * s - 2 * 2 * s * h));
}

TEST_CASE("preset arguments change shapes, unknown ones are errors") {
  CHECK(preset("resnet50", {{"num_classes", int64_t{10}}}).parameter_elements() ==
        25'557'032 - 990 * 2049);
  CHECK(preset("gpt2", {{"seq_len", int64_t{128}}}).layers.back().output == Shape{128, 50257});
  CHECK(std::holds_alternative<NetworkError>(describe_preset("gpt5")));
  CHECK(
      std::holds_alternative<NetworkError>(describe_preset("mlp", {{"image_size", int64_t{224}}})));
}
