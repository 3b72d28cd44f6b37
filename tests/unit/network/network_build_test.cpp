#include <catch2/catch.hpp>

#include "model/network/build.hpp"
#include "model/network/presets.hpp"

using namespace lockstep;

namespace network_build_test {

namespace {

LayerDescription layer(std::string kind, std::vector<NamedArgument> arguments = {},
                       std::vector<LayerDescription> layers = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments), .layers = std::move(layers)};
}

LayerDescription linear(int64_t in, int64_t out) { return layer("Linear", {{"", in}, {"", out}}); }

NetworkError only_error(const NetworkDescription& description) {
  const BuildResult result = build_network(description);
  REQUIRE(result.errors.size() == 1);
  CHECK_FALSE(result.errors[0].remedy.empty());
  return result.errors[0];
}

Flops total(const Network& network, Pass pass) {
  Flops sum;
  for (const Layer& each : network.layers) {
    sum += flops_of(each, pass, 1);
  }
  return sum;
}

}  // namespace

TEST_CASE("a linear layer takes its input from its own arguments") {
  const BuildResult result = build_network({.layers = {linear(32, 64), linear(64, 2)}});
  REQUIRE(result.ok());
  CHECK(result.network.input == Shape{32});
  CHECK(result.network.layers[1].output == Shape{2});
  CHECK(result.network.layers[1].name == "1");
  CHECK(result.network.parameter_elements() == 32 * 64 + 64 + 64 * 2 + 2);
  CHECK(result.network.parameter_name({1, 0}) == "1.weight");
}

TEST_CASE("a wrong in_features names the layer and the right number") {
  const NetworkError error = only_error({.layers = {linear(32, 64), layer("ReLU"), linear(32, 2)}});
  CHECK(error.layer == 2);
  CHECK(error.path == "layers[2]");
  CHECK(error.message.find("[64]") != std::string::npos);
  CHECK(error.remedy.find("64") != std::string::npos);
}

TEST_CASE("unknown layers, unknown arguments and wrong types are errors") {
  CHECK(only_error({.input = Shape{4}, .layers = {layer("Liner")}}).message ==
        "no layer is called Liner");
  CHECK(only_error(
            {.layers = {layer("Linear", {{"", int64_t{4}}, {"", int64_t{2}}, {"biased", true}})}})
            .message == "`biased` of Linear is not modelled yet");
  CHECK(only_error({.layers = {layer("Linear", {{"", int64_t{4}}, {"", 2.5}})}}).message ==
        "`out_features` of Linear has the wrong type");
  CHECK(only_error({.layers = {layer("Linear", {{"in_features", int64_t{4}}})}}).message ==
        "Linear needs `out_features`");
  CHECK(only_error({.layers = {linear(4, 2)}, .loss = layer("HingeLoss")}).path == "loss");
  CHECK(only_error({.layers = {layer("ReLU")}}).path == "input");
}

TEST_CASE("an image too small for its window is an error") {
  const NetworkError error = only_error(
      {.input = Shape{3, 4, 4},
       .layers = {layer("Conv2d", {{"", int64_t{3}}, {"", int64_t{8}}, {"", int64_t{7}}})}});
  CHECK(error.message == "a window of 7 x 7 does not fit into the input [3, 4, 4]");
}

TEST_CASE("a residual whose branches differ asks for a shortcut") {
  const NetworkError error =
      only_error({.input = Shape{8}, .layers = {layer("Residual", {}, {linear(8, 4)})}});
  CHECK(error.message == "a residual adds [4] to [8]");
  NetworkDescription with_shortcut{.input = Shape{8},
                                   .layers = {layer("Residual", {}, {linear(8, 4)})}};
  with_shortcut.layers[0].shortcut = {
      layer("Linear", {{"", int64_t{8}}, {"", int64_t{4}}, {"name", std::string("project")}})};
  const BuildResult result = build_network(with_shortcut);
  REQUIRE(result.ok());
  std::vector<LayerKind> kinds;
  for (const Layer& each : result.network.layers) {
    kinds.push_back(each.kind);
  }
  CHECK(kinds == std::vector{LayerKind::residual_begin, LayerKind::linear,
                             LayerKind::residual_shortcut, LayerKind::linear,
                             LayerKind::residual_add});
  CHECK(result.network.layers[3].name == "0.project");
  CHECK(result.network.layers[3].input == Shape{8});
}

TEST_CASE("a repeat numbers on and distinguishes named turns") {
  NetworkDescription description{.input = Shape{8}};
  description.layers = {layer("repeat", {{"times", int64_t{2}}},
                              {linear(8, 8), layer("ReLU", {{"name", std::string("act")}})})};
  const BuildResult result = build_network(description);
  REQUIRE(result.ok());
  std::vector<std::string> names;
  for (const Layer& each : result.network.layers) {
    names.push_back(each.name);
  }
  CHECK(names == std::vector<std::string>{"0", "act.0", "2", "act.1"});
}

TEST_CASE("two layers of one name are an error") {
  const NamedArgument name{"name", std::string("a")};
  CHECK(only_error({.input = Shape{8}, .layers = {layer("ReLU", {name}), layer("ReLU", {name})}})
            .message == "two layers are called `a`");
}

TEST_CASE("a relu after a linear layer is kept once") {
  // Kept: the first output of ReLU (its own backward and the next weight's gradient share it), and
  // the log-probabilities. The batch itself and the first Linear's output are not.
  const BuildResult result =
      build_network({.layers = {linear(32, 64), layer("ReLU"), linear(64, 2)}});
  REQUIRE(result.ok());
  CHECK(result.network.activation_bytes(DType::fp32) == Bytes(4 * (64 + 2)));
  CHECK(result.network.layers[1].kept_elements == 64);
}

TEST_CASE("a flattened relu is still kept once") {
  const BuildResult result = build_network(
      {.input = Shape{2, 4, 4},
       .layers = {layer("Conv2d", {{"", int64_t{2}}, {"", int64_t{3}}, {"", int64_t{1}}}),
                  layer("ReLU"), layer("Flatten"), linear(48, 2)}});
  REQUIRE(result.ok());
  CHECK(result.network.activation_bytes(DType::bf16) == Bytes(2 * (48 + 2)));
}

TEST_CASE("no gradient flows back beyond the first trainable parameter") {
  NetworkDescription description{.layers = {linear(8, 8), linear(8, 8), linear(8, 2)}};
  description.layers[0].arguments.push_back({"trainable", false});
  const BuildResult result = build_network(description);
  REQUIRE(result.ok());
  const auto& layers = result.network.layers;
  CHECK(flops_of(layers[0], Pass::weight_gradient, 1) == Flops(0));
  CHECK(flops_of(layers[1], Pass::input_gradient, 1) == Flops(0));
  CHECK(flops_of(layers[1], Pass::weight_gradient, 3) == Flops(3 * 2 * 8 * 8));
  CHECK(flops_of(layers[2], Pass::input_gradient, 1) == Flops(2 * 8 * 2));
  CHECK(result.network.trainable_elements() == 8 * 8 + 8 + 8 * 2 + 2);
  CHECK(layers[0].kept_elements == 8);  // the second layer's weight gradient needs it
}

TEST_CASE("a cost layer has its own prices and keeps the shape") {
  const BuildResult result = build_network({.input = Shape{16},
                                            .layers = {layer("Cost", {{"parameters", int64_t{1000}},
                                                                      {"forward", 3_ms},
                                                                      {"backward", 6_ms},
                                                                      {"activation", 4_MiB}})},
                                            .loss = layer("MSELoss")});
  REQUIRE(result.ok());
  const Layer& cost = result.network.layers[0];
  CHECK(std::get<CostArguments>(cost.arguments).backward == 6_ms);
  CHECK(cost.parameter_elements() == 1000);
  CHECK(cost.activation_bytes(DType::fp16) == 4_MiB + 32_B);  // and the input of the MSE
  CHECK(cost.output == Shape{16});
}

TEST_CASE("a flattened dimension range leaves the others") {
  const BuildResult result =
      build_network({.input = Shape{2, 3, 4},
                     .layers = {layer("Flatten", {{"", int64_t{2}}}), layer("ReLU")},
                     .loss = layer("MSELoss")});
  REQUIRE(result.ok());
  CHECK(result.network.layers[0].output == Shape{2, 12});
}

TEST_CASE("weighted layers cost twice the forward in backward, attention's scores as well") {
  const int64_t s = 16;
  const int64_t e = 32;
  const BuildResult result =
      build_network({.input = Shape{s, e},
                     .layers = {layer("Linear", {{"", e}, {"", e}}),
                                layer("MultiheadAttention", {{"", e}, {"", int64_t{4}}})},
                     .loss = layer("MSELoss")});
  REQUIRE(result.ok());
  const Flops attention(8 * s * e * e + 4 * s * s * e);
  CHECK(flops_of(result.network.layers[1], Pass::forward, 1) == attention);
  CHECK(flops_of(result.network.layers[1], Pass::input_gradient, 1) +
            flops_of(result.network.layers[1], Pass::weight_gradient, 1) ==
        attention * 2);
  CHECK(total(result.network, Pass::weight_gradient) == Flops(2 * s * e * e + 8 * s * e * e));
}

TEST_CASE("cross entropy refuses scores whose classes are not last") {
  CHECK(only_error({.input = Shape{3, 4, 4}, .layers = {layer("ReLU")}}).path == "loss");
}

TEST_CASE("sizes beyond all memory are errors, not overflows") {
  const int64_t huge = int64_t{1} << 40;
  CHECK(only_error({.layers = {linear(huge, huge)}}).remedy == "write smaller sizes");
  CHECK(only_error({.layers = {linear(8, 2 * huge)}}).path == "layers[0]");
  CHECK(only_error({.input = Shape{huge, huge}, .layers = {layer("ReLU")}}).path == "input");
  CHECK(only_error({.input = Shape{0}, .layers = {layer("ReLU")}}).path == "input");
  CHECK(only_error({.input = Shape{int64_t{1} << 30, 8},
                    .layers = {layer("MultiheadAttention", {{"", int64_t{8}}, {"", int64_t{1}}})}})
            .remedy == "write a shorter sequence");
  CHECK(only_error(
            {.input = Shape{1, 8, 8},
             .layers = {layer(
                 "Conv2d",
                 {{"", int64_t{1}}, {"", int64_t{1}}, {"kernel_size", huge}, {"padding", huge}})}})
            .remedy == "write smaller sizes");
  CHECK(only_error({.input = Shape{1},
                    .layers = {layer("Buffer", {{"", std::vector<int64_t>{huge, huge, 4}}})}})
            .remedy == "write smaller sizes");
}

TEST_CASE("nested repeats of nothing end") {
  const LayerDescription inner = layer("repeat", {{"times", int64_t{1'000'000}}}, {});
  const LayerDescription outer = layer("repeat", {{"times", int64_t{1'000'000}}}, {inner});
  CHECK(only_error({.input = Shape{1}, .layers = {outer}}).remedy == "repeat fewer times");
}

TEST_CASE("a list holds several errors of one layer") {
  const BuildResult result = build_network(
      {.input = Shape{8}, .layers = {layer("Linear", {{"bias", int64_t{1}}, {"oops", true}})}});
  CHECK(result.errors.size() == 4);  // two missing, one of the wrong type, one unknown
}

}  // namespace network_build_test
