// MobileNet, EfficientNet, ConvNeXt and Swin: parameters and work as published.
#include <catch2/catch.hpp>
#include <string>

#include "model/network/presets.hpp"

using namespace lockstep;

namespace mobile_presets_test {

namespace {

Network mobile(std::string_view name, const std::vector<NamedArgument>& arguments = {}) {
  const auto description = describe_preset(name, arguments);
  REQUIRE(std::holds_alternative<NetworkDescription>(description));
  BuildResult result = build_network(std::get<NetworkDescription>(description));
  for (const NetworkError& error : result.errors) {
    FAIL(error.path << ": " << error.message);
  }
  return result.network;
}

struct PublishedImageNetwork {
  std::string_view name;
  int64_t parameters;
  double giga_multiply_adds;  ///< of one image
};
// torchvision.models' weights metadata, `num_params` and `_ops` (a multiply-add is 1).
constexpr PublishedImageNetwork published[] = {
    {"mobilenet-v2", 3'504'872, 0.301},        {"mobilenet-v3-small", 2'542'856, 0.057},
    {"mobilenet-v3-large", 5'483'032, 0.217},  {"efficientnet-b0", 5'288'548, 0.386},
    {"efficientnet-b1", 7'794'184, 0.687},     {"efficientnet-b2", 9'109'994, 1.088},
    {"efficientnet-b3", 12'233'232, 1.827},    {"efficientnet-b4", 19'341'616, 4.394},
    {"efficientnet-b5", 30'389'784, 10.266},   {"efficientnet-b6", 43'040'704, 19.068},
    {"efficientnet-b7", 66'347'960, 37.746},   {"efficientnet-v2-s", 21'458'488, 8.366},
    {"efficientnet-v2-m", 54'139'356, 24.582}, {"efficientnet-v2-l", 118'515'272, 56.08},
    {"convnext-tiny", 28'589'128, 4.456},      {"convnext-small", 50'223'688, 8.684},
    {"convnext-base", 88'591'464, 15.355},     {"convnext-large", 197'767'336, 34.361},
    {"swin-tiny", 28'288'354, 4.491},          {"swin-small", 49'606'258, 8.741},
    {"swin-base", 87'768'224, 15.431}};

}  // namespace

TEST_CASE("mobile and windowed presets have torchvision's parameters and multiply-adds") {
  for (const PublishedImageNetwork& each : published) {
    INFO(each.name);
    const Network network = mobile(each.name);
    CHECK(network.parameter_elements() == each.parameters);
    const double multiply_adds = static_cast<double>(network.forward_flops().count()) / 2e9;
    CHECK(multiply_adds == Approx(each.giga_multiply_adds).epsilon(0.01));
  }
}

TEST_CASE("mobile and windowed presets name their parameters as torchvision does") {
  const auto has = [](const Network& network, std::string_view wanted) {
    for (const ParameterPlace place : network.parameters()) {
      if (network.parameter_name(place) == wanted) {
        return true;
      }
    }
    return false;
  };
  CHECK(has(mobile("mobilenet-v2"), "features.2.conv.1.0.weight"));
  CHECK(has(mobile("mobilenet-v3-small"), "features.1.block.1.fc1.bias"));
  CHECK(has(mobile("efficientnet-b0"), "features.2.0.block.2.fc2.weight"));
  CHECK(has(mobile("efficientnet-v2-s"), "features.1.0.block.0.0.weight"));
  CHECK(has(mobile("convnext-tiny"), "features.1.0.block.5.bias"));
  CHECK(has(mobile("swin-tiny"), "features.1.1.attn.relative_position_bias_table"));
  CHECK(has(mobile("swin-tiny"), "features.2.reduction.weight"));
}

TEST_CASE("blocks are skipped with a probability that grows with their number") {
  // EfficientNet: 0.2 * block / 16 blocks; ConvNeXt tiny: 0.1 * block / (18 - 1).
  const auto last_depth = [](const Network& network) {
    double p = -1;
    for (const Layer& layer : network.layers) {
      if (const auto* depth = std::get_if<StochasticDepthArguments>(&layer.arguments)) {
        p = depth->p;
      }
    }
    return p;
  };
  // B0's last residual block is the fourth of the stage before the last one: number 14 from 0.
  CHECK(last_depth(mobile("efficientnet-b0", {{"stochastic_depth", 0.2}})) ==
        Approx(0.2 * 14 / 16));
  CHECK(last_depth(mobile("convnext-tiny", {{"stochastic_depth", 0.1}})) == Approx(0.1));
  CHECK(last_depth(mobile("swin-tiny")) == 0);
}

TEST_CASE("a smaller image of Swin is enlarged to whole windows") {
  // 160 / 4 = 40 pixels a side become 42: 36 windows of 49; projections 4 * 2 * 96^2 and scores
  // 2 * 2 * 49 * 96 for each of their positions.
  const Network network = mobile("swin-tiny", {{"image_size", int64_t{160}}});
  const Layer* attention = nullptr;
  for (const Layer& layer : network.layers) {
    if (layer.kind == LayerKind::window_attention && attention == nullptr) {
      attention = &layer;
    }
  }
  REQUIRE(attention != nullptr);
  CHECK(attention->work_of(Pass::forward).flops ==
        Flops(int64_t{42} * 42 * (8 * 96 * 96 + 4 * 49 * 96)));
  CHECK(attention->output == Shape{40, 40, 96});
}

}  // namespace mobile_presets_test
