// Which modules of a network a wrap policy makes units of.
#include <catch2/catch.hpp>

#include "model/network/build.hpp"
#include "model/network/presets.hpp"
#include "model/strategy/layout/wrap_policy.hpp"
#include "tests/unit/strategy/simulated.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace wrap_policy_test {

namespace {

using Modules = std::vector<WrappedModule>;

Network preset(std::string_view name) {
  auto described = describe_preset(name, {});
  BuildResult built = build_network(std::get<NetworkDescription>(described));
  ensure(built.ok(), "a preset is sound");
  return std::move(built.network);
}

/// Linear 4-8 | Sequential {Linear 8-8, ReLU, Sequential {Linear 8-8}} | Linear 8-2.
Network nested() {
  LayerDescription inner{.kind = "Sequential", .layers = {linear(8, 8)}};
  LayerDescription outer{.kind = "Sequential", .layers = {linear(8, 8), {.kind = "ReLU"}, inner}};
  NetworkDescription description;
  description.name = "nested";
  description.input = {4};
  description.layers = {linear(4, 8), outer, linear(8, 2)};
  description.loss = {.kind = "MSELoss"};
  BuildResult built = build_network(description);
  ensure(built.ok(), "the nested network is sound");
  return std::move(built.network);
}

}  // namespace

TEST_CASE("a policy by class wraps every module of the class, outer ones first") {
  CHECK(wrapped_modules(nested(), {.classes = {"Sequential"}}) == Modules{{1, 3}, {3, 3}});
  CHECK(wrapped_modules(nested(), {.classes = {"Linear"}}) ==
        Modules{{0, 0}, {1, 1}, {3, 3}, {4, 4}});
  CHECK(wrapped_modules(nested(), {.classes = {"Conv2d"}}).empty());
}

TEST_CASE("GPT-2 has twelve blocks and ResNet-50 sixteen by the names of their published code") {
  CHECK(wrapped_modules(preset("gpt2"), {.classes = {"GPT2Block"}}).size() == 12);
  CHECK(wrapped_modules(preset("gpt2"), {.repeated_blocks = true}).size() == 12);
  CHECK(wrapped_modules(preset("resnet50"), {.classes = {"Bottleneck"}}).size() == 16);
}

// 40 + (72 + 72) + 18 parameters. Children are asked first: the inner Linear (72), then the inner
// Sequential has nothing left; the outer Sequential's own Linear (72) is a module too.
TEST_CASE("a policy by size wraps what is large and in no unit yet") {
  CHECK(wrapped_modules(nested(), {.min_num_params = 72}) == Modules{{1, 1}, {3, 3}});
  CHECK(wrapped_modules(nested(), {.min_num_params = 100}) == Modules{{1, 3}});
  CHECK(wrapped_modules(nested(), {.min_num_params = 1000}).empty());
}

// As torch 2.11.0 wraps them: Linear 4-8 (40) | Sequential {Linear 8-8 (72), BatchNorm1d (16)}.
TEST_CASE("batch norms that are apart are modules of their own, and count for no other's size") {
  LayerDescription norm{.kind = "BatchNorm1d", .arguments = {{"", int64_t{8}}}};
  NetworkDescription description;
  description.name = "normalised";
  description.input = {4};
  description.layers = {linear(4, 8), {.kind = "Sequential", .layers = {linear(8, 8), norm}}};
  description.loss = {.kind = "MSELoss"};
  const BuildResult built = build_network(description);
  REQUIRE(built.ok());
  const Network& network = built.network;
  CHECK(wrapped_modules(network, {.classes = {"Sequential"}, .batch_norms_apart = true}) ==
        Modules{{1, 2}, {2, 2}});
  CHECK(wrapped_modules(network, {.classes = {"BatchNorm1d"}, .batch_norms_apart = true}) ==
        Modules{{2, 2}});
  CHECK(wrapped_modules(network, {.repeated_blocks = true, .batch_norms_apart = true}) ==
        Modules{{2, 2}});
  CHECK(wrapped_modules(network, {.min_num_params = 73, .batch_norms_apart = true}) ==
        Modules{{2, 2}});
  CHECK(wrapped_modules(network, {.min_num_params = 73}) == Modules{{1, 2}});
}

}  // namespace wrap_policy_test
