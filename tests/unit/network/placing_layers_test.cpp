// Upsample, PatchSequence, FirstPosition and Concatenate.
#include <catch2/catch.hpp>

#include "model/network/arithmetic/placing.hpp"
#include "model/network/build.hpp"
#include "tests/unit/network/slopes.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace placing_layers_test {

namespace {

LayerDescription placed(std::string kind, std::vector<NamedArgument> arguments = {},
                        std::vector<LayerDescription> layers = {}) {
  return {.kind = std::move(kind), .arguments = std::move(arguments), .layers = std::move(layers)};
}

BuildResult placing(Shape input, std::vector<LayerDescription> layers) {
  return build_network(
      {.input = std::move(input), .layers = std::move(layers), .loss = {.kind = "MSELoss"}});
}

}  // namespace

TEST_CASE("the first two dimensions trade places, and what is behind them stays together") {
  Values to(DType::fp32, 12);
  // [2, 3, 2]
  swap_outer(Values::of(DType::fp32, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), 2, 3, to);
  CHECK(to == Values::of(DType::fp32, {1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12}));
}

TEST_CASE("an image is enlarged to the nearest element, and gradients meet in it") {
  const UpsampleShape shape{1, 1, 2, 2, 3};
  Values output(DType::fp32, 12);
  upsample_forward(fp32({1, 2}), shape, output);
  CHECK(output == fp32({1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  Values gradient(DType::fp32, 2);
  upsample_backward(fp32({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), shape, gradient);
  CHECK(gradient == fp32({1 + 2 + 3 + 7 + 8 + 9, 4 + 5 + 6 + 10 + 11 + 12}));
}

TEST_CASE("pixels become positions behind the class token") {
  const PatchSequenceShape shape{2, 2, 2};  // two samples, two channels of two pixels
  const Values token = fp32({-1, -2});
  Values output(DType::fp32, 12);
  patch_sequence_forward(fp32({1, 2, 3, 4, 5, 6, 7, 8}), &token, shape, output);
  CHECK(output == fp32({-1, -2, 1, 3, 2, 4, -1, -2, 5, 7, 6, 8}));
  Values input_gradient(DType::fp32, 8);
  Values token_gradient = fp32({100, 200});
  patch_sequence_backward(output, true, shape, &input_gradient, &token_gradient);
  CHECK(input_gradient == fp32({1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(token_gradient == fp32({98, 196}));
  Values bare(DType::fp32, 8);
  patch_sequence_forward(fp32({1, 2, 3, 4, 5, 6, 7, 8}), nullptr, shape, bare);
  CHECK(bare == fp32({1, 3, 2, 4, 5, 7, 6, 8}));
}

TEST_CASE("columns of each sample are taken and put back") {
  Values taken(DType::fp32, 4);
  take_columns(fp32({1, 2, 3, 4, 5, 6}), 2, 1, 2, taken);
  CHECK(taken == fp32({2, 3, 5, 6}));
  Values whole(DType::fp32, 6);
  put_columns(taken, 2, 0, whole);
  CHECK(whole == fp32({2, 3, 0, 5, 6, 0}));
}

TEST_CASE("layers that place elements have their shapes and no FLOPs") {
  const NamedArgument two{"scale_factor", int64_t{2}};
  const BuildResult enlarged = placing({3, 4, 5}, {placed("Upsample", {two})});
  REQUIRE(enlarged.ok());
  CHECK(enlarged.network.layers[0].output == Shape{3, 8, 10});
  CHECK(enlarged.network.forward_flops() == Flops(0));
  CHECK(placing({3, 4, 5}, {placed("Upsample", {two, {"mode", std::string("bilinear")}})})
            .errors.front()
            .is_unmodelled);
  const BuildResult sequence = placing(
      {3, 4, 5}, {placed("PatchSequence", {{"channels", int64_t{3}}}), placed("FirstPosition")});
  REQUIRE(sequence.ok());
  CHECK(sequence.network.layers[0].output == Shape{21, 3});
  CHECK(sequence.network.layers[0].parameter_elements() == 3);
  CHECK(sequence.network.layers[1].output == Shape{3});
  CHECK(placing({3, 4}, {placed("PatchSequence", {{"channels", int64_t{3}}})}).errors.size() == 1);
  CHECK(placing({3}, {placed("FirstPosition")}).errors.size() == 1);
}

TEST_CASE("a Concatenate puts its input before what its layers make of it") {
  const NamedArgument three{"", int64_t{3}};
  const NamedArgument one{"", int64_t{1}};
  const BuildResult joined = placing(
      {3, 4, 4}, {placed("Concatenate", {}, {placed("Conv2d", {three, {"", int64_t{5}}, one})})});
  REQUIRE(joined.ok());
  CHECK(joined.network.layers.back().kind == LayerKind::residual_concatenate);
  CHECK(joined.network.layers.back().output == Shape{8, 4, 4});
  const BuildResult apart =
      placing({3, 4, 4}, {placed("Concatenate", {}, {placed("MaxPool2d", {{"", int64_t{2}}})})});
  REQUIRE(apart.errors.size() == 1);
  CHECK(apart.errors.front().message ==
        "[3, 4, 4] cannot stand before [3, 2, 2]: only the first sizes may differ");
}

}  // namespace placing_layers_test
