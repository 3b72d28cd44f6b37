#include "model/network/checkpointing.hpp"

#include <catch2/catch.hpp>

#include "model/network/build.hpp"
#include "model/network/presets.hpp"

using namespace lockstep;

namespace checkpointing_test {

namespace {

using Segments = std::vector<CheckpointedSegment>;

LayerDescription layer(std::string kind, std::vector<NamedArgument> arguments = {},
                       std::vector<LayerDescription> layers = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments), .layers = std::move(layers)};
}

LayerDescription linear(int64_t in, int64_t out, std::vector<NamedArgument> more = {}) {
  more.insert(more.begin(), {{"", in}, {"", out}});
  return layer("Linear", std::move(more));
}

const NamedArgument by_torch{"checkpoint", std::string("torch")};
const NamedArgument by_truth{"checkpoint", true};
const NamedArgument by_fairscale{"checkpoint", std::string("fairscale")};

Network built(NetworkDescription description) {
  const BuildResult result = build_network(description);
  for (const NetworkError& error : result.errors) {
    FAIL(error.path << ": " << error.message);
  }
  return result.network;
}

std::string only_message(const NetworkDescription& description) {
  const BuildResult result = build_network(description);
  REQUIRE(result.errors.size() == 1);
  CHECK_FALSE(result.errors[0].remedy.empty());
  return result.errors[0].message;
}

NetworkDescription gpt(bool flash) {
  auto description = std::get<NetworkDescription>(describe_preset("gpt2", {}));
  description.flash_attention = flash;
  return description;
}

}  // namespace

TEST_CASE("layers that are marked one by one are segments of their own") {
  const Network network = built({.layers = {linear(4, 4, {by_truth}), linear(4, 4, {by_fairscale}),
                                            linear(4, 4, {{"checkpoint", false}}), linear(4, 2)}});
  CHECK(network.segments ==
        Segments{{0, 0, Recomputation::torch}, {1, 1, Recomputation::fairscale}});
  CHECK(network.segment_of(1) == &network.segments[1]);
  CHECK(network.segment_of(2) == nullptr);
}

TEST_CASE("a marked container is one segment, a marked repeat one for each turn") {
  const Network network = built(
      {.layers = {linear(4, 4), layer("Sequential", {by_torch}, {linear(4, 4), layer("ReLU")}),
                  layer("Residual", {by_torch}, {linear(4, 4)}),
                  layer("repeat", {{"times", int64_t{2}}, by_torch}, {linear(4, 4), layer("ReLU")}),
                  linear(4, 2)}});
  // 0 Linear; 1, 2 Sequential; 3 to 5 Residual with its two markers; 6, 7 and 8, 9 the turns.
  CHECK(network.segments == Segments{{1, 2}, {3, 5}, {6, 7}, {8, 9}});
}

TEST_CASE("a segment inside of another, an unknown mark and a core without attention are errors") {
  CHECK(only_message({.layers = {layer("Sequential", {by_torch}, {linear(4, 4, {by_torch})})}}) ==
        "a checkpointed segment inside of another");
  CHECK(only_message({.layers = {linear(4, 4, {{"checkpoint", std::string("megatron")}})}}) ==
        "no way to checkpoint is called `megatron`");
  CHECK(only_message({.layers = {linear(4, 4, {{"checkpoint", std::string("attention_core")}})}}) ==
        "Linear has no attention core");
}

TEST_CASE("a segment that no gradient comes to is none") {
  const NamedArgument frozen{"trainable", false};
  const Network network =
      built({.layers = {linear(4, 4, {frozen, by_torch}), linear(4, 4, {by_torch}), linear(4, 2)}});
  CHECK(network.segments == Segments{{1, 1}});
}

TEST_CASE("a segment keeps its input, and what is inside only from its second forward on") {
  const auto describe = [](bool marked) {
    const std::vector<NamedArgument> mark = {{"checkpoint", marked}};
    return NetworkDescription{
        .layers = {linear(4, 8),
                   layer("Sequential", mark, {linear(8, 8), layer("ReLU"), linear(8, 8)}),
                   layer("Sequential", mark, {layer("ReLU"), linear(8, 8)}), linear(8, 2)},
        .loss = {.kind = "MSELoss"}};
  };
  const auto elements = [](const Network& network, int64_t Layer::*member) {
    std::vector<int64_t> of_layers;
    for (const Layer& each : network.layers) {
      of_layers.push_back(each.*member);
    }
    return of_layers;
  };
  using Elements = std::vector<int64_t>;
  // A linear layer needs its input, a ReLU its output; the MSE needs the predictions.
  const Network plain = built(describe(false));
  CHECK(elements(plain, &Layer::kept_elements) == Elements{8, 0, 8, 0, 8, 8, 2});
  CHECK(elements(plain, &Layer::recomputed_elements) == Elements(7, 0));
  // Now the inputs of both segments, and what came out of the second.
  const Network network = built(describe(true));
  CHECK(elements(network, &Layer::kept_elements) == Elements{8, 0, 0, 8, 0, 8, 2});
  CHECK(elements(network, &Layer::recomputed_elements) == Elements{0, 0, 8, 0, 8, 0, 0});
  CHECK(network.layers[2].recomputed_bytes(DType::bf16) == Bytes(16));
}

TEST_CASE("full makes each transformer layer and each block of a ResNet a segment") {
  NetworkDescription description = gpt(true);
  CHECK(checkpoint_blocks(description.layers) == 12);
  const Network network = built(description);
  REQUIRE(network.segments.size() == 12);
  // Embeddings and dropout come before; a layer has two residuals of 3 and 5 layers.
  CHECK(network.segments[0] == CheckpointedSegment{3, 3 + 11});
  CHECK(network.layers[3 + 12].kind == LayerKind::residual_begin);
  // Of a transformer layer its input stays: s h numbers (Korthikanti et al. 2022, full
  // recomputation).
  for (const CheckpointedSegment& segment : network.segments) {
    int64_t kept = 0;
    for (size_t i = segment.first; i <= segment.last; ++i) {
      kept += network.layers[i].kept_elements;
    }
    CHECK(kept == 1024 * 768);  // the input of what follows
  }
  auto resnet = std::get<NetworkDescription>(describe_preset("resnet50", {}));
  CHECK(checkpoint_blocks(resnet.layers) == 16);
  const Network blocks = built(resnet);
  REQUIRE(blocks.segments.size() == 16);
  CHECK(blocks.layers[blocks.segments[0].last].name == "layer1.0.relu_out");
}

TEST_CASE("full takes turns of a repeat and residuals as blocks, and leaves marks alone") {
  NetworkDescription description{
      .layers = {linear(4, 4),
                 layer("repeat", {{"times", int64_t{2}}},
                       {layer("Residual", {}, {linear(4, 4)}), layer("ReLU")}),
                 layer("Sequential", {}, {layer("Residual", {}, {linear(4, 4)})}),
                 layer("Residual", {{"checkpoint", false}}, {linear(4, 4)}), linear(4, 2)}};
  CHECK(checkpoint_blocks(description.layers) == 2);
  CHECK(built(description).segments == Segments{{1, 4}, {5, 8}, {9, 11}});
  std::vector<LayerDescription> plain = {linear(4, 4), layer("ReLU")};
  CHECK(checkpoint_blocks(plain) == 0);
}

TEST_CASE("selective frees what Korthikanti et al. count for the attention core") {
  // 16 bit, no flash attention, with dropout: 5 a s^2 bytes per layer of probabilities, dropout's
  // mask and its result; its FLOPs are those of scores and weighted sum, 4 s^2 h.
  NetworkDescription description = gpt(false);
  const Bytes whole = built(description).activation_bytes(DType::bf16);
  CHECK(checkpoint_attention(description.layers) == 12);
  const Network network = built(description);
  REQUIRE(network.segments.size() == 12);
  const int64_t s = 1024;
  CHECK(whole - network.activation_bytes(DType::bf16) == Bytes(12 * 5 * 12 * s * s));
  const Layer& attention = network.layers[network.segments[0].first];
  REQUIRE(attention.attention_core);
  CHECK(attention.recomputed_bytes(DType::bf16) == Bytes(5 * 12 * s * s));
  CHECK(attention.attention_core->work.flops == Flops(4 * s * s * 768));
}

TEST_CASE(
    "of flash attention selective frees the sums of rows alone, and an mlp has no attention") {
  NetworkDescription description = gpt(true);
  const Bytes whole = built(description).activation_bytes(DType::bf16);
  checkpoint_attention(description.layers);
  CHECK(whole - built(description).activation_bytes(DType::bf16) == Bytes(12 * 4 * 12 * 1024));
  auto perceptron = std::get<NetworkDescription>(describe_preset("mlp", {}));
  CHECK(checkpoint_attention(perceptron.layers) == 0);
}

// Two blocks of class Block, one beside a Linear and one around a Residual.
TEST_CASE("modules of a class are marked by the name that their published code has") {
  LayerDescription block = layer("Sequential", {}, {linear(4, 4), layer("ReLU")});
  block.block_class = "Block";
  NetworkDescription description;
  description.input = {4};
  description.layers = {block, linear(4, 4), layer("Residual", {}, {linear(4, 4)})};
  description.loss = {.kind = "MSELoss"};

  NetworkDescription by_block = description;
  CHECK(checkpoint_classes(by_block.layers, {"Block"}).marked == 1);
  CHECK(built(by_block).segments == Segments{{0, 1}});

  NetworkDescription by_layer = description;
  CHECK(checkpoint_classes(by_layer.layers, {"Linear"}).marked == 3);
  CHECK(built(by_layer).segments == Segments{{0, 0}, {2, 2}, {4, 4}});

  NetworkDescription by_kind = description;  // a block of a preset is no plain Sequential
  CHECK(checkpoint_classes(by_kind.layers, {"Sequential"}).marked == 0);
  CHECK_FALSE(has_checkpoints(by_kind.layers));

  NetworkDescription nested = description;
  const CheckpointedClasses found = checkpoint_classes(nested.layers, {"Residual", "Linear"});
  CHECK(found.has_nested);
  CHECK(found.marked == 3);
  CHECK(has_checkpoints(nested.layers));
}

}  // namespace checkpointing_test
