// DenseNet: Huang et al. 2017, with the names of torchvision. Each dense layer puts 32 or 48
// channels behind those that came in; torchvision concatenates the inputs of a layer anew, which is
// the same.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/network/published.hpp"

namespace lockstep {

namespace {

struct DensenetShape {
  std::string_view name;
  std::array<int64_t, 4> layers;  ///< of each dense block
  int64_t growth = 32;            ///< channels that a layer adds
  int64_t first = 64;             ///< channels before the first block
};
constexpr DensenetShape densenets[] = {{"densenet121", {6, 12, 24, 16}},
                                       {"densenet161", {6, 12, 36, 24}, 48, 96},
                                       {"densenet169", {6, 12, 32, 32}},
                                       {"densenet201", {6, 12, 48, 32}}};

LayerDescription plain_convolution(std::string name, int64_t in, int64_t out, int64_t kernel,
                                   int64_t stride = 1) {
  return named_layer("Conv2d", std::move(name),
                     {{"in_channels", in},
                      {"out_channels", out},
                      {"kernel_size", kernel},
                      {"stride", stride},
                      {"padding", kernel / 2},
                      {"bias", false}});
}

void add_norm(const std::string& norm, const std::string& relu, int64_t channels, Layers& layers) {
  layers.push_back(named_layer("BatchNorm2d", norm, {{"num_features", channels}}));
  layers.push_back(named_layer("ReLU", relu));
}

/// Through a bottleneck of four times the growth.
LayerDescription dense_layer(const std::string& name, int64_t channels, int64_t growth) {
  LayerDescription joined = named_layer("Concatenate", name);
  constexpr int64_t widening = 4;
  add_norm("norm1", "relu1", channels, joined.layers);
  joined.layers.push_back(plain_convolution("conv1", channels, widening * growth, 1));
  add_norm("norm2", "relu2", widening * growth, joined.layers);
  joined.layers.push_back(plain_convolution("conv2", widening * growth, growth, 3));
  return joined;
}

}  // namespace

std::optional<NetworkDescription> describe_densenet(std::string_view name,
                                                    ArgumentReader& arguments) {
  const auto* shape = std::ranges::find(densenets, name, &DensenetShape::name);
  if (shape == std::end(densenets)) {
    return std::nullopt;
  }
  const int64_t image_size = arguments.integer("image_size", 224);
  const int64_t classes = arguments.integer("num_classes", 1000);
  NetworkDescription network{.name = std::string(name), .input = Shape{3, image_size, image_size}};
  Layers& layers = network.layers;
  layers.push_back(plain_convolution("features.conv0", 3, shape->first, 7, 2));
  add_norm("features.norm0", "features.relu0", shape->first, layers);
  layers.push_back(
      named_layer("MaxPool2d", "features.pool0",
                  {{"kernel_size", int64_t{3}}, {"stride", int64_t{2}}, {"padding", int64_t{1}}}));
  int64_t channels = shape->first;
  for (size_t block = 0; block < shape->layers.size(); ++block) {
    for (int64_t layer = 0; layer < shape->layers[block]; ++layer) {
      const std::string place =
          fmt::format("features.denseblock{}.denselayer{}", block + 1, layer + 1);
      layers.push_back(
          repeating_block("_DenseLayer", {dense_layer(place, channels, shape->growth)}));
      channels += shape->growth;
    }
    if (block + 1 < shape->layers.size()) {  // halves channels and edges
      const std::string place = fmt::format("features.transition{}", block + 1);
      add_norm(place + ".norm", place + ".relu", channels, layers);
      layers.push_back(plain_convolution(place + ".conv", channels, channels / 2, 1));
      layers.push_back(named_layer("AvgPool2d", place + ".pool", {{"kernel_size", int64_t{2}}}));
      channels /= 2;
    }
  }
  add_norm("features.norm5", "features.relu5", channels, layers);
  layers.push_back(named_layer("AdaptiveAvgPool2d", "avgpool", {{"", int64_t{1}}}));
  layers.push_back(named_layer("Flatten", "flatten"));
  layers.push_back(named_layer("Linear", "classifier", {{"", channels}, {"", classes}}));
  return network;
}

}  // namespace lockstep
