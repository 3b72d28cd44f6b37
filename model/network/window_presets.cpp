// Published networks that mix positions by large or shifted windows, with the names of torchvision:
// ConvNeXt and Swin.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/network/published.hpp"

namespace lockstep {

namespace {

using Depths = std::array<int64_t, 4>;

/// The probabilities with which samples skip blocks, from 0 for the first up to `most`.
class BlockDepths {
 public:
  BlockDepths(const Depths& blocks, double most) : most_(most) {
    for (const int64_t count : blocks) {
      total_ += count;
    }
  }
  double next() {
    return most_ * static_cast<double>(number_++) / std::max(1.0, static_cast<double>(total_ - 1));
  }

 private:
  double most_;
  int64_t total_ = 0;
  int64_t number_ = 0;
};

LayerDescription permuted(const std::string& name, std::vector<int64_t> dims) {
  return named_layer("Permute", name, {{"dims", std::move(dims)}});
}
LayerDescription channels_last(const std::string& name) { return permuted(name, {0, 2, 3, 1}); }
LayerDescription channels_first(const std::string& name) { return permuted(name, {0, 3, 1, 2}); }

LayerDescription norm_over(const std::string& name, int64_t width, double eps) {
  return named_layer("LayerNorm", name, {{"", width}, {"eps", eps}});
}

LayerDescription linear_layer(const std::string& name, int64_t in, int64_t out, bool bias = true) {
  return named_layer("Linear", name, {{"", in}, {"", out}, {"bias", bias}});
}

LayerDescription patches(const std::string& name, int64_t in, int64_t out, int64_t size) {
  return named_layer(
      "Conv2d", name,
      {{"in_channels", in}, {"out_channels", out}, {"kernel_size", size}, {"stride", size}});
}

// ---- ConvNeXt: Liu et al. 2022 ----

struct NamedConvNext {
  std::string_view name;
  int64_t width;
  Depths blocks;
};
constexpr NamedConvNext conv_nexts[] = {{"convnext-tiny", 96, {3, 3, 9, 3}},
                                        {"convnext-small", 96, {3, 3, 27, 3}},
                                        {"convnext-base", 128, {3, 3, 27, 3}},
                                        {"convnext-large", 192, {3, 3, 27, 3}}};
constexpr double eps_of_convnext = 1e-6;

/// torchvision's LayerNorm2d.
void add_norm_over_channels(const std::string& name, int64_t width, Layers& layers) {
  layers.push_back(channels_last(name + ".to_last"));
  layers.push_back(norm_over(name, width, eps_of_convnext));
  layers.push_back(channels_first(name + ".to_first"));
}

void add_convnext_block(const std::string& name, int64_t width, double depth, Layers& layers) {
  const std::string inside = name + ".block.";
  layers.push_back(repeating_block(
      "CNBlock",
      {residual("",
                {named_layer("Conv2d", inside + "0",
                             {{"in_channels", width},
                              {"out_channels", width},
                              {"kernel_size", int64_t{7}},
                              {"padding", int64_t{3}},
                              {"groups", width}}),
                 channels_last(inside + "1"), norm_over(inside + "2", width, eps_of_convnext),
                 linear_layer(inside + "3", width, 4 * width), named_layer("GELU", inside + "4"),
                 linear_layer(inside + "5", 4 * width, width), channels_first(inside + "6"),
                 named_layer("LayerScale", name + ".layer_scale",
                             {{"shape", std::vector<int64_t>{width, 1, 1}}, {"init_values", 1e-6}}),
                 named_layer("StochasticDepth", name + ".stochastic_depth", {{"p", depth}})})}));
}

NetworkDescription describe_convnext(const NamedConvNext& net, ArgumentReader& arguments) {
  const int64_t image = arguments.integer("image_size", 224);
  const int64_t classes = arguments.integer("num_classes", 1000);
  BlockDepths depths(net.blocks, arguments.number("stochastic_depth", 0));
  NetworkDescription network{.name = std::string(net.name), .input = Shape{3, image, image}};
  Layers& layers = network.layers;
  layers.push_back(patches("features.0.0", 3, net.width, 4));
  add_norm_over_channels("features.0.1", net.width, layers);
  int64_t width = net.width;
  for (size_t stage = 0; stage < net.blocks.size(); ++stage) {
    if (stage > 0) {
      const std::string name = fmt::format("features.{}", 2 * stage);
      add_norm_over_channels(name + ".0", width, layers);
      layers.push_back(patches(name + ".1", width, 2 * width, 2));
      width *= 2;
    }
    for (int64_t block = 0; block < net.blocks[stage]; ++block) {
      add_convnext_block(fmt::format("features.{}.{}", 2 * stage + 1, block), width, depths.next(),
                         layers);
    }
  }
  layers.push_back(named_layer("AdaptiveAvgPool2d", "avgpool", {{"", int64_t{1}}}));
  add_norm_over_channels("classifier.0", width, layers);
  layers.push_back(named_layer("Flatten", "classifier.1"));
  layers.push_back(linear_layer("classifier.2", width, classes));
  return network;
}

// ---- Swin: Liu et al. 2021 ----

struct NamedSwin {
  std::string_view name;
  int64_t width;
  Depths blocks;
  Depths heads;
};
constexpr NamedSwin swins[] = {{"swin-tiny", 96, {2, 2, 6, 2}, {3, 6, 12, 24}},
                               {"swin-small", 96, {2, 2, 18, 2}, {3, 6, 12, 24}},
                               {"swin-base", 128, {2, 2, 18, 2}, {4, 8, 16, 32}}};
constexpr double eps_of_swin = 1e-5;
constexpr int64_t swin_window = 7;

struct SwinBlock {
  int64_t width = 0;
  int64_t heads = 0;
  bool is_shifted = false;
  double depth = 0;
};

void add_swin_block(const SwinBlock& block, const std::string& name, Layers& layers) {
  const int64_t width = block.width;
  const auto skipped = [&](const char* part) {
    return named_layer("StochasticDepth", fmt::format("{}.stochastic_depth{}", name, part),
                       {{"p", block.depth}});
  };
  LayerDescription attention =
      residual("", {norm_over(name + ".norm1", width, eps_of_swin),
                    named_layer("WindowAttention", name + ".attn",
                                {{"dim", width},
                                 {"window_size", swin_window},
                                 {"shift_size", block.is_shifted ? swin_window / 2 : int64_t{0}},
                                 {"num_heads", block.heads}}),
                    skipped("")});
  LayerDescription perceptron = residual(
      "", {norm_over(name + ".norm2", width, eps_of_swin),
           linear_layer(name + ".mlp.0", width, 4 * width), named_layer("GELU", name + ".mlp.1"),
           linear_layer(name + ".mlp.3", 4 * width, width), skipped("_2")});
  layers.push_back(
      repeating_block("SwinTransformerBlock", {std::move(attention), std::move(perceptron)}));
}

NetworkDescription describe_swin(const NamedSwin& net, ArgumentReader& arguments) {
  const int64_t image = arguments.integer("image_size", 224);
  const int64_t classes = arguments.integer("num_classes", 1000);
  BlockDepths depths(net.blocks, arguments.number("stochastic_depth", 0));
  NetworkDescription network{.name = std::string(net.name), .input = Shape{3, image, image}};
  Layers& layers = network.layers;
  layers = {patches("features.0.0", 3, net.width, 4), channels_last("features.0.1"),
            norm_over("features.0.2", net.width, eps_of_swin)};
  int64_t width = net.width;
  for (size_t stage = 0; stage < net.blocks.size(); ++stage) {
    if (stage > 0) {
      const std::string name = fmt::format("features.{}", 2 * stage);
      layers.push_back(named_layer("PatchMerging", name));
      layers.push_back(norm_over(name + ".norm", 4 * width, eps_of_swin));
      layers.push_back(linear_layer(name + ".reduction", 4 * width, 2 * width, false));
      width *= 2;
    }
    for (int64_t block = 0; block < net.blocks[stage]; ++block) {
      add_swin_block({width, net.heads[stage], block % 2 == 1, depths.next()},
                     fmt::format("features.{}.{}", 2 * stage + 1, block), layers);
    }
  }
  layers.push_back(norm_over("norm", width, eps_of_swin));
  layers.push_back(channels_first("permute"));
  layers.push_back(named_layer("AdaptiveAvgPool2d", "avgpool", {{"", int64_t{1}}}));
  layers.push_back(named_layer("Flatten", "flatten"));
  layers.push_back(linear_layer("head", width, classes));
  return network;
}

}  // namespace

std::optional<NetworkDescription> describe_window_preset(std::string_view name,
                                                         ArgumentReader& arguments) {
  if (const auto* net = std::ranges::find(conv_nexts, name, &NamedConvNext::name);
      net != std::end(conv_nexts)) {
    return describe_convnext(*net, arguments);
  }
  const auto* swin = std::ranges::find(swins, name, &NamedSwin::name);
  return swin == std::end(swins) ? std::nullopt : std::optional(describe_swin(*swin, arguments));
}

}  // namespace lockstep
