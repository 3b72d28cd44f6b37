// What scenarios may name is built, or refused as not modelled; and what the new kinds cost.
#include <algorithm>
#include <catch2/catch.hpp>

#include "io/scenario/classes/catalogue.hpp"
#include "model/network/build.hpp"

using namespace lockstep;

namespace offered_layers_test {

namespace {

LayerDescription layer(std::string kind, std::vector<NamedArgument> arguments = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

constexpr NamedArgument at(int64_t value) { return {"", value}; }

BuildResult built(Shape input, LayerDescription description) {
  return build_network(
      {.input = std::move(input), .layers = {std::move(description)}, .loss = layer("MSELoss")});
}

Network network(Shape input, LayerDescription description) {
  BuildResult result = built(std::move(input), std::move(description));
  INFO((result.ok() ? "" : result.errors.front().message));
  REQUIRE(result.ok());
  return std::move(result.network);
}

NetworkError only_error(Shape input, LayerDescription description) {
  const BuildResult result = built(std::move(input), std::move(description));
  REQUIRE(result.errors.size() == 1);
  return result.errors.front();
}

}  // namespace

TEST_CASE("every layer and loss of the schema is built or is known as not modelled") {
  const std::vector<std::string_view> names = layer_names();
  for (const ClassRow& row : classes(ObjectRole::layer)) {
    INFO(row.name);
    CHECK((std::ranges::count(names, row.name) == 1 || is_known_and_unmodelled(row.name)));
  }
  const std::vector<std::string_view> losses = loss_names();
  for (const ClassRow& row : classes(ObjectRole::loss)) {
    INFO(row.name);
    CHECK(std::ranges::count(losses, row.name) == 1);
  }
}

TEST_CASE("layers and arguments that torch has and Lockstep has not are refused as not modelled") {
  CHECK(only_error({4, 4}, layer("SyncBatchNorm")).is_unmodelled);
  CHECK(only_error({4}, layer("Linear", {at(4), at(2), {"dtype", std::string("bf16")}}))
            .is_unmodelled);
  CHECK(only_error({2, 4, 4}, layer("MaxPool2d", {at(2), {"ceil_mode", true}})).is_unmodelled);
  CHECK(network({2, 4, 4}, layer("MaxPool2d", {at(2), {"ceil_mode", false}})).layers.size() == 1);
  CHECK_FALSE(only_error({4}, layer("Linear", {at(5), at(2)})).is_unmodelled);
}

TEST_CASE("a one-dimensional convolution has torch's shapes and FLOPs") {
  // (9 + 2 - 2 (3 - 1) - 1) / 2 + 1 = 4; 2 * 6 * 4 outputs * (4 / 2) * 3 pairs.
  const Network conv = network({4, 9}, layer("Conv1d", {at(4),
                                                        at(6),
                                                        at(3),
                                                        {"stride", int64_t{2}},
                                                        {"padding", int64_t{1}},
                                                        {"dilation", int64_t{2}},
                                                        {"groups", int64_t{2}}}));
  CHECK(conv.layers[0].output == Shape{6, 4});
  CHECK(conv.layers[0].parameters[0].shape == Shape{6, 2, 3});
  CHECK(conv.forward_flops() == Flops(2 * 6 * 4 * 2 * 3));
}

TEST_CASE("a transposed convolution has torch's shapes and FLOPs") {
  // DCGAN: (4 - 1) 2 - 2 + (4 - 1) + 1 = 8; each of 8 * 4 * 4 inputs meets 3 * 4 * 4 weights.
  const Network conv =
      network({8, 4, 4}, layer("ConvTranspose2d", {at(8), at(3), at(4), at(2), at(1)}));
  CHECK(conv.layers[0].output == Shape{3, 8, 8});
  CHECK(conv.layers[0].parameters[0].shape == Shape{8, 3, 4, 4});
  CHECK(conv.layers[0].parameters[1].shape == Shape{3});
  CHECK(conv.forward_flops() == Flops(2 * 8 * 4 * 4 * 3 * 4 * 4));
}

TEST_CASE("activations and norms keep for backward what autograd keeps") {
  // Behind a Linear of 8 outputs: the input (8 fp32) or the output, and fp32 statistics.
  const auto kept = [](LayerDescription second) {
    BuildResult result =
        build_network({.input = Shape{2, 4},
                       .layers = {layer("Linear", {at(4), at(8)}), std::move(second)},
                       .loss = layer("MSELoss")});
    REQUIRE(result.ok());
    return result.network.layers[0].activation_bytes(DType::fp32) +
           result.network.layers[1].activation_bytes(DType::fp32);
  };
  const Bytes state = 4_B * (2 * 8);
  CHECK(kept(layer("Identity")) == state);  // MSELoss keeps its input, the Linear's output
  CHECK(kept(layer("Sigmoid")) == state);   // its output, which the loss keeps as well
  CHECK(kept(layer("SiLU")) == 2 * state);  // its input; the loss keeps its output
  CHECK(kept(layer("LeakyReLU")) == 2 * state);
  CHECK(kept(layer("LeakyReLU", {{"inplace", true}})) == state);
  CHECK(kept(layer("RMSNorm", {at(8)})) == 2 * state + 2 * 4_B);
}

TEST_CASE("a TransformerEncoderLayer has the parameters of torch's") {
  // torch: self_attn 4 d^2 + 4 d, linear1 and linear2 2 d f + f + d, two norms 4 d; d 8, f 16.
  const int64_t expected = 4 * 64 + 32 + 2 * 8 * 16 + 16 + 8 + 32;
  const Network encoder = network(
      {3, 8}, layer("TransformerEncoderLayer", {at(8), at(2), {"dim_feedforward", int64_t{16}}}));
  CHECK(encoder.parameter_elements() == expected);
  std::vector<std::string> names;
  for (const ParameterPlace place : encoder.parameters()) {
    names.push_back(encoder.parameter_name(place));
  }
  CHECK(std::ranges::count(names, "0.self_attn.in_proj_weight") == 1);
  CHECK(std::ranges::count(names, "0.linear1.weight") == 1);
  CHECK(std::ranges::count(names, "0.norm2.bias") == 1);
  const Network bare = network(
      {3, 8},
      layer(
          "TransformerEncoderLayer",
          {at(8), at(2), {"dim_feedforward", int64_t{16}}, {"bias", false}, {"norm_first", true}}));
  CHECK(bare.parameter_elements() == 4 * 64 + 2 * 8 * 16 + 16);
  CHECK(bare.layers[1].kind == LayerKind::layer_norm);  // behind the beginning of the residual
}

}  // namespace offered_layers_test
