// Published networks of depthwise convolutions and squeeze-and-excitation, with the names of
// torchvision: MobileNetV2 and V3, EfficientNet and EfficientNetV2.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "model/network/published.hpp"

namespace lockstep {

namespace {

/// The norm behind each convolution, and the activation behind most.
struct ConvolutionStyle {
  std::string activation{};
  double eps = 1e-5;
  double momentum = 0.1;
};

struct Convolution {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t groups = 1;
};

/// Convolution, norm and activation, or without the last.
void add_convolution(const ConvolutionStyle& style, const std::string& name,
                     const Convolution& convolution, bool is_activated, Layers& layers) {
  layers.push_back(named_layer("Conv2d", name + ".0",
                               {{"in_channels", convolution.in},
                                {"out_channels", convolution.out},
                                {"kernel_size", convolution.kernel},
                                {"stride", convolution.stride},
                                {"padding", (convolution.kernel - 1) / 2},
                                {"groups", convolution.groups},
                                {"bias", false}}));
  layers.push_back(named_layer(
      "BatchNorm2d", name + ".1",
      {{"num_features", convolution.out}, {"eps", style.eps}, {"momentum", style.momentum}}));
  if (is_activated) {
    layers.push_back(named_layer(style.activation, name + ".2"));
  }
}

/// Squeeze-and-excitation (Hu et al. 2018): channels are scaled by what their means give.
void add_excitation(const std::string& name, int64_t channels, int64_t squeezed,
                    const char* activation, const char* scale, Layers& layers) {
  const auto convolution = [&](const char* part, int64_t in, int64_t out) {
    return named_layer("Conv2d", name + part,
                       {{"in_channels", in}, {"out_channels", out}, {"kernel_size", int64_t{1}}});
  };
  LayerDescription product = named_layer("Multiply", "");
  product.layers = {
      named_layer("AdaptiveAvgPool2d", name + ".avgpool", {{"", int64_t{1}}}),
      convolution(".fc1", channels, squeezed), named_layer(activation, name + ".activation"),
      convolution(".fc2", squeezed, channels), named_layer(scale, name + ".scale_activation")};
  layers.push_back(std::move(product));
}

/// With a skip connection around it where its input fits.
void add_block(const char* block_class, const std::string& name, bool is_residual, double depth,
               Layers inside, Layers& layers) {
  if (is_residual) {
    inside.push_back(named_layer("StochasticDepth", name + ".stochastic_depth", {{"p", depth}}));
    inside = {residual("", std::move(inside))};
  }
  layers.push_back(repeating_block(block_class, std::move(inside)));
}

NetworkDescription of_images(std::string_view name, ArgumentReader& arguments, int64_t image) {
  const int64_t size = arguments.integer("image_size", image);
  return {.name = std::string(name), .input = Shape{3, size, size}};
}

void add_mean(Layers& layers) {
  layers.push_back(named_layer("AdaptiveAvgPool2d", "avgpool", {{"", int64_t{1}}}));
  layers.push_back(named_layer("Flatten", "flatten"));
}

LayerDescription linear(const char* name, int64_t in, int64_t out) {
  return named_layer("Linear", name, {{"", in}, {"", out}});
}

/// A multiple of 8 near `width`, and not below 9 tenths of it.
int64_t channels_near(double width) {
  const int64_t near = std::max<int64_t>(8, static_cast<int64_t>(width + 4) / 8 * 8);
  return static_cast<double>(near) < 0.9 * width ? near + 8 : near;
}

// ---- MobileNetV2: Sandler et al. 2018, table 2 ----

struct InvertedStage {
  int64_t expansion, channels, blocks, stride;
};
constexpr InvertedStage inverted_stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                                             {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                                             {6, 320, 1, 1}};

NetworkDescription describe_mobilenet_v2(ArgumentReader& arguments) {
  NetworkDescription network = of_images("mobilenet-v2", arguments, 224);
  const int64_t classes = arguments.integer("num_classes", 1000);
  const double dropout = arguments.number("dropout", 0);
  const ConvolutionStyle style{"ReLU6"};
  Layers& layers = network.layers;
  add_convolution(style, "features.0", {3, 32, 3, 2}, true, layers);
  int64_t in = 32;
  int64_t number = 1;
  for (const InvertedStage& stage : inverted_stages) {
    for (int64_t block = 0; block < stage.blocks; ++block, ++number) {
      const std::string name = fmt::format("features.{}", number);
      const int64_t inner = in * stage.expansion;
      const int64_t stride = block == 0 ? stage.stride : 1;
      int64_t part = 0;
      Layers inside;
      if (stage.expansion > 1) {
        add_convolution(style, fmt::format("{}.conv.{}", name, part++), {in, inner}, true, inside);
      }
      add_convolution(style, fmt::format("{}.conv.{}", name, part++),
                      {inner, inner, 3, stride, inner}, true, inside);
      inside.push_back(named_layer("Conv2d", fmt::format("{}.conv.{}", name, part++),
                                   {{"in_channels", inner},
                                    {"out_channels", stage.channels},
                                    {"kernel_size", int64_t{1}},
                                    {"bias", false}}));
      inside.push_back(named_layer("BatchNorm2d", fmt::format("{}.conv.{}", name, part),
                                   {{"num_features", stage.channels}}));
      const bool is_residual = stride == 1 && in == stage.channels;
      add_block("InvertedResidual", name, is_residual, 0, std::move(inside), layers);
      in = stage.channels;
    }
  }
  constexpr int64_t last = 1280;
  add_convolution(style, fmt::format("features.{}", number), {in, last}, true, layers);
  add_mean(layers);
  layers.push_back(named_layer("Dropout", "classifier.0", {{"p", dropout}}));
  layers.push_back(linear("classifier.1", last, classes));
  return network;
}

// ---- MobileNetV3: Howard et al. 2019, tables 1 and 2 ----

struct SearchedBlock {
  int64_t kernel, inner, out;
  bool is_excited;
  bool is_hardswish;  ///< else ReLU
  int64_t stride;
};
constexpr SearchedBlock large_blocks[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2}, {3, 72, 24, false, false, 1},
    {5, 72, 40, true, false, 2},  {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1}, {5, 960, 160, true, true, 1}};
constexpr SearchedBlock small_blocks[] = {
    {3, 16, 16, true, false, 2}, {3, 72, 24, false, false, 2}, {3, 88, 24, false, false, 1},
    {5, 96, 40, true, true, 2},  {5, 240, 40, true, true, 1},  {5, 240, 40, true, true, 1},
    {5, 120, 48, true, true, 1}, {5, 144, 48, true, true, 1},  {5, 288, 96, true, true, 2},
    {5, 576, 96, true, true, 1}, {5, 576, 96, true, true, 1}};

void add_searched_block(const SearchedBlock& block, int64_t in, const std::string& name,
                        Layers& layers) {
  const ConvolutionStyle style{block.is_hardswish ? "Hardswish" : "ReLU", 0.001, 0.01};
  int64_t part = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", name, part++); };
  Layers inside;
  if (block.inner != in) {
    add_convolution(style, next(), {in, block.inner}, true, inside);
  }
  add_convolution(style, next(),
                  {block.inner, block.inner, block.kernel, block.stride, block.inner}, true,
                  inside);
  if (block.is_excited) {
    const int64_t squeezed = channels_near(static_cast<double>(block.inner / 4));
    add_excitation(next(), block.inner, squeezed, "ReLU", "Hardsigmoid", inside);
  }
  add_convolution(style, next(), {block.inner, block.out}, false, inside);
  add_block("InvertedResidual", name, block.stride == 1 && in == block.out, 0, std::move(inside),
            layers);
}

NetworkDescription describe_mobilenet_v3(std::string_view name,
                                         std::span<const SearchedBlock> blocks, int64_t hidden,
                                         ArgumentReader& arguments) {
  NetworkDescription network = of_images(name, arguments, 224);
  const int64_t classes = arguments.integer("num_classes", 1000);
  const double dropout = arguments.number("dropout", 0);
  const ConvolutionStyle style{"Hardswish", 0.001, 0.01};
  Layers& layers = network.layers;
  add_convolution(style, "features.0", {3, 16, 3, 2}, true, layers);
  int64_t in = 16;
  for (size_t i = 0; i < blocks.size(); ++i) {
    add_searched_block(blocks[i], in, fmt::format("features.{}", i + 1), layers);
    in = blocks[i].out;
  }
  const int64_t last = 6 * in;
  add_convolution(style, fmt::format("features.{}", blocks.size() + 1), {in, last}, true, layers);
  add_mean(layers);
  layers.push_back(linear("classifier.0", last, hidden));
  layers.push_back(named_layer("Hardswish", "classifier.1"));
  layers.push_back(named_layer("Dropout", "classifier.2", {{"p", dropout}}));
  layers.push_back(linear("classifier.3", hidden, classes));
  return network;
}

// ---- EfficientNet: Tan & Le 2019, table 1, and 2021, table 4 ----

struct ScaledStage {
  bool is_fused;  ///< one convolution in place of a pointwise and a depthwise one
  int64_t expansion, kernel, stride, in, out, blocks;
};
constexpr ScaledStage stages_of_b[] = {{false, 1, 3, 1, 32, 16, 1},  {false, 6, 3, 2, 16, 24, 2},
                                       {false, 6, 5, 2, 24, 40, 2},  {false, 6, 3, 2, 40, 80, 3},
                                       {false, 6, 5, 1, 80, 112, 3}, {false, 6, 5, 2, 112, 192, 4},
                                       {false, 6, 3, 1, 192, 320, 1}};
constexpr ScaledStage stages_of_s[] = {
    {true, 1, 3, 1, 24, 24, 2},   {true, 4, 3, 2, 24, 48, 4},    {true, 4, 3, 2, 48, 64, 4},
    {false, 4, 3, 2, 64, 128, 6}, {false, 6, 3, 1, 128, 160, 9}, {false, 6, 3, 2, 160, 256, 15}};
constexpr ScaledStage stages_of_m[] = {
    {true, 1, 3, 1, 24, 24, 3},   {true, 4, 3, 2, 24, 48, 5},     {true, 4, 3, 2, 48, 80, 5},
    {false, 4, 3, 2, 80, 160, 7}, {false, 6, 3, 1, 160, 176, 14}, {false, 6, 3, 2, 176, 304, 18},
    {false, 6, 3, 1, 304, 512, 5}};
constexpr ScaledStage stages_of_l[] = {
    {true, 1, 3, 1, 32, 32, 4},    {true, 4, 3, 2, 32, 64, 7},     {true, 4, 3, 2, 64, 96, 7},
    {false, 4, 3, 2, 96, 192, 10}, {false, 6, 3, 1, 192, 224, 19}, {false, 6, 3, 2, 224, 384, 25},
    {false, 6, 3, 1, 384, 640, 7}};

struct NamedEfficientNet {
  std::string_view name;
  std::span<const ScaledStage> stages;
  double width;
  double depth;
  int64_t image;
  int64_t last;  ///< channels of the last convolution; 0: four times its input
  double eps;
  double momentum;
};
constexpr NamedEfficientNet efficient_nets[] = {
    {"efficientnet-b0", stages_of_b, 1.0, 1.0, 224, 0, 1e-5, 0.1},
    {"efficientnet-b1", stages_of_b, 1.0, 1.1, 240, 0, 1e-5, 0.1},
    {"efficientnet-b2", stages_of_b, 1.1, 1.2, 288, 0, 1e-5, 0.1},
    {"efficientnet-b3", stages_of_b, 1.2, 1.4, 300, 0, 1e-5, 0.1},
    {"efficientnet-b4", stages_of_b, 1.4, 1.8, 380, 0, 1e-5, 0.1},
    {"efficientnet-b5", stages_of_b, 1.6, 2.2, 456, 0, 0.001, 0.01},
    {"efficientnet-b6", stages_of_b, 1.8, 2.6, 528, 0, 0.001, 0.01},
    {"efficientnet-b7", stages_of_b, 2.0, 3.1, 600, 0, 0.001, 0.01},
    {"efficientnet-v2-s", stages_of_s, 1.0, 1.0, 384, 1280, 1e-3, 0.1},
    {"efficientnet-v2-m", stages_of_m, 1.0, 1.0, 480, 1280, 1e-3, 0.1},
    {"efficientnet-v2-l", stages_of_l, 1.0, 1.0, 480, 1280, 1e-3, 0.1}};

struct ScaledBlock {
  bool is_fused = false;
  Convolution middle{};  ///< from the block's input to its output, with its kernel and stride
  int64_t inner = 0;
  double depth = 0;  ///< probability that a sample skips it
};

void add_scaled_block(const ConvolutionStyle& style, const ScaledBlock& block,
                      const std::string& name, Layers& layers) {
  const auto [in, out, kernel, stride, groups] = block.middle;
  const int64_t inner = block.inner;
  int64_t part = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", name, part++); };
  Layers inside;
  if (block.is_fused && inner == in) {
    add_convolution(style, next(), {in, out, kernel, stride}, true, inside);
  } else if (block.is_fused) {
    add_convolution(style, next(), {in, inner, kernel, stride}, true, inside);
    add_convolution(style, next(), {inner, out}, false, inside);
  } else {
    if (inner != in) {
      add_convolution(style, next(), {in, inner}, true, inside);
    }
    add_convolution(style, next(), {inner, inner, kernel, stride, inner}, true, inside);
    add_excitation(next(), inner, std::max<int64_t>(1, in / 4), "SiLU", "Sigmoid", inside);
    add_convolution(style, next(), {inner, out}, false, inside);
  }
  add_block(block.is_fused ? "FusedMBConv" : "MBConv", name, stride == 1 && in == out, block.depth,
            std::move(inside), layers);
}

int64_t blocks_of(const NamedEfficientNet& net, const ScaledStage& stage) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(stage.blocks) * net.depth));
}

NetworkDescription describe_efficientnet(const NamedEfficientNet& net, ArgumentReader& arguments) {
  NetworkDescription network = of_images(net.name, arguments, net.image);
  const int64_t classes = arguments.integer("num_classes", 1000);
  const double dropout = arguments.number("dropout", 0);
  const double depth = arguments.number("stochastic_depth", 0);
  const auto channels = [&](int64_t width) {
    return channels_near(static_cast<double>(width) * net.width);
  };
  const ConvolutionStyle style{"SiLU", net.eps, net.momentum};
  Layers& layers = network.layers;
  add_convolution(style, "features.0", {3, channels(net.stages.front().in), 3, 2}, true, layers);
  int64_t total = 0;
  for (const ScaledStage& stage : net.stages) {
    total += blocks_of(net, stage);
  }
  int64_t before = 0;
  for (size_t i = 0; i < net.stages.size(); ++i) {
    const ScaledStage& stage = net.stages[i];
    for (int64_t turn = 0; turn < blocks_of(net, stage); ++turn, ++before) {
      const int64_t in = channels(turn == 0 ? stage.in : stage.out);
      ScaledBlock block{stage.is_fused, {in, channels(stage.out), stage.kernel}};
      block.middle.stride = turn == 0 ? stage.stride : 1;
      block.inner = channels_near(static_cast<double>(in * stage.expansion));
      block.depth = depth * static_cast<double>(before) / static_cast<double>(total);
      add_scaled_block(style, block, fmt::format("features.{}.{}", i + 1, turn), layers);
    }
  }
  const int64_t in = channels(net.stages.back().out);
  const int64_t last = net.last > 0 ? net.last : 4 * in;
  add_convolution(style, fmt::format("features.{}", net.stages.size() + 1), {in, last}, true,
                  layers);
  add_mean(layers);
  layers.push_back(named_layer("Dropout", "classifier.0", {{"p", dropout}}));
  layers.push_back(linear("classifier.1", last, classes));
  return network;
}

}  // namespace

std::optional<NetworkDescription> describe_mobile_preset(std::string_view name,
                                                         ArgumentReader& arguments) {
  if (name == "mobilenet-v2") {
    return describe_mobilenet_v2(arguments);
  }
  if (name == "mobilenet-v3-large") {
    return describe_mobilenet_v3(name, large_blocks, 1280, arguments);
  }
  if (name == "mobilenet-v3-small") {
    return describe_mobilenet_v3(name, small_blocks, 1024, arguments);
  }
  const auto* net = std::ranges::find(efficient_nets, name, &NamedEfficientNet::name);
  return net == std::end(efficient_nets) ? std::nullopt
                                         : std::optional(describe_efficientnet(*net, arguments));
}

}  // namespace lockstep
