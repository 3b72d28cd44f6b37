#include "model/network/modules.hpp"

#include <catch2/catch.hpp>

#include "model/network/accounting.hpp"
#include "model/network/build.hpp"

using namespace lockstep;

namespace modules_test {

namespace {

LayerDescription linear(int64_t in, int64_t out) {
  return {.kind = "Linear", .arguments = {{"", in}, {"", out}}};
}

Network built(NetworkDescription description) {
  description.loss = {.kind = "MSELoss"};
  BuildResult result = build_network(description);
  REQUIRE(result.ok());
  return result.network;
}

}  // namespace

TEST_CASE("modules stand one behind the other, and their layers carry their names") {
  const Network whole = joined({{"generator", built({.layers = {linear(4, 8), linear(8, 2)}})},
                                {"discriminator", built({.layers = {linear(2, 1)}})}});
  REQUIRE(whole.modules.size() == 2);
  CHECK(whole.layers[1].name == "generator.1");
  CHECK(whole.layers[2].name == "discriminator.0");
  CHECK(whole.modules[1].first_layer == 2);
  CHECK(whole.modules[1].end_layer == 3);
  CHECK(whole.input_of(0) == Shape{4});
  CHECK(whole.input_of(1) == Shape{2});
  CHECK(whole.loss_of(0).input == Shape{2});
  CHECK(whole.loss_of(1).input == Shape{1});
  CHECK(whole.parameter_elements() == (4 * 8 + 8) + (8 * 2 + 2) + (2 + 1));
}

TEST_CASE("a tied weight and a checkpointed segment move with their module") {
  LayerDescription tied = linear(4, 8);
  tied.arguments.push_back({"tied_to", std::string("words")});
  tied.arguments.push_back({"bias", false});
  NetworkDescription words;
  words.input = Shape{3};
  words.layers = {
      {.kind = "Embedding",
       .arguments = {{"", int64_t{8}}, {"", int64_t{4}}, {"name", std::string("words")}}},
      {.kind = "ReLU", .arguments = {{"checkpoint", true}}},
      tied};
  const Network whole =
      joined({{"first", built({.layers = {linear(4, 4)}})}, {"second", built(words)}});
  CHECK(whole.layers[3].tied_layer == 1);
  REQUIRE(whole.segments.size() == 1);
  CHECK(whole.segments[0].first == 2);
  CHECK(whole.segments[0].last == 2);
}

// A Linear of a x b does 2ab FLOPs forward, as many for the weight's gradient, and as many for the
// input's where somebody wants it.
TEST_CASE("the input of a module that another feeds gets a gradient") {
  NetworkDescription description{.layers = {linear(4, 8)}};
  CHECK(flops_of(built(description).layers[0], Pass::input_gradient, 1) == Flops(0));
  description.input_has_gradient = true;
  CHECK(flops_of(built(description).layers[0], Pass::input_gradient, 1) == Flops(2 * 4 * 8));
}

}  // namespace modules_test
