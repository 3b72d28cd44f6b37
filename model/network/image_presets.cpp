// Published networks of images: ResNet and its kin, VGG, U-Net, vision transformers.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/network/published.hpp"

namespace lockstep {

namespace {

// ---- ResNet: He et al. 2016, with the stride on the 3x3 convolution as in torchvision (v1.5) ----

LayerDescription convolution(std::string name, int64_t in, int64_t out, int64_t kernel,
                             int64_t stride, int64_t groups = 1) {
  return named_layer("Conv2d", std::move(name),
                     {{"in_channels", in},
                      {"out_channels", out},
                      {"kernel_size", kernel},
                      {"stride", stride},
                      {"padding", kernel / 2},
                      {"groups", groups},
                      {"bias", false}});
}

LayerDescription batch_norm_of(std::string name, int64_t channels) {
  return named_layer("BatchNorm2d", std::move(name), {{"num_features", channels}});
}

/// Wide ResNets (Zagoruyko & Komodakis 2016) and ResNeXts (Xie et al. 2017) differ in what their
/// 3x3 convolution is as wide as.
struct ResnetShape {
  std::array<int64_t, 4> blocks;
  bool is_bottleneck;
  int64_t groups = 1;
  int64_t width_per_group = 64;  ///< of the first stage
};

Layers resnet_branch(const ResnetShape& shape, int64_t in, int64_t width, int64_t out,
                     int64_t stride) {
  if (!shape.is_bottleneck) {
    return {convolution("conv1", in, width, 3, stride), batch_norm_of("bn1", width),
            named_layer("ReLU", "relu"), convolution("conv2", width, out, 3, 1),
            batch_norm_of("bn2", out)};
  }
  return {convolution("conv1", in, width, 1, 1),
          batch_norm_of("bn1", width),
          named_layer("ReLU", "relu1"),
          convolution("conv2", width, width, 3, stride, shape.groups),
          batch_norm_of("bn2", width),
          named_layer("ReLU", "relu2"),
          convolution("conv3", width, out, 1, 1),
          batch_norm_of("bn3", out)};
}

/// Adds one block to `layers` and returns its number of output channels.
int64_t add_resnet_block(const ResnetShape& shape, int64_t stage, int64_t block, int64_t in,
                         Layers& layers) {
  const int64_t planes = int64_t{64} << stage;
  const int64_t width = shape.groups * (shape.width_per_group << stage);
  const int64_t out = shape.is_bottleneck ? 4 * planes : planes;
  const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
  Layers shortcut;
  if (stride != 1 || in != out) {
    shortcut = {convolution("downsample.0", in, out, 1, stride),
                batch_norm_of("downsample.1", out)};
  }
  const std::string name = fmt::format("layer{}.{}", stage + 1, block);
  layers.push_back(repeating_block(
      shape.is_bottleneck ? "Bottleneck" : "BasicBlock",
      {residual(name, resnet_branch(shape, in, width, out, stride), std::move(shortcut)),
       named_layer("ReLU", name + ".relu_out")}));
  return out;
}

NetworkDescription describe_resnet(std::string_view name, const ResnetShape& shape,
                                   ArgumentReader& arguments) {
  const int64_t image_size = arguments.integer("image_size", 224);
  const int64_t classes = arguments.integer("num_classes", 1000);
  NetworkDescription network{.name = std::string(name), .input = Shape{3, image_size, image_size}};
  network.layers = {
      convolution("conv1", 3, 64, 7, 2), batch_norm_of("bn1", 64), named_layer("ReLU", "relu"),
      named_layer("MaxPool2d", "maxpool",
                  {{"kernel_size", int64_t{3}}, {"stride", int64_t{2}}, {"padding", int64_t{1}}})};
  int64_t channels = 64;
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < shape.blocks[static_cast<size_t>(stage)]; ++block) {
      channels = add_resnet_block(shape, stage, block, channels, network.layers);
    }
  }
  network.layers.push_back(named_layer("AdaptiveAvgPool2d", "avgpool", {{"", int64_t{1}}}));
  network.layers.push_back(named_layer("Flatten", "flatten"));
  network.layers.push_back(named_layer("Linear", "fc", {{"", channels}, {"", classes}}));
  return network;
}

struct NamedResnet {
  std::string_view name;
  ResnetShape shape;
};

constexpr NamedResnet resnets[] = {{"resnet18", {{2, 2, 2, 2}, false}},
                                   {"resnet34", {{3, 4, 6, 3}, false}},
                                   {"resnet50", {{3, 4, 6, 3}, true}},
                                   {"resnet101", {{3, 4, 23, 3}, true}},
                                   {"resnet152", {{3, 8, 36, 3}, true}},
                                   {"wide-resnet50-2", {{3, 4, 6, 3}, true, 1, 128}},
                                   {"wide-resnet101-2", {{3, 4, 23, 3}, true, 1, 128}},
                                   {"resnext50-32x4d", {{3, 4, 6, 3}, true, 32, 4}},
                                   {"resnext101-32x8d", {{3, 4, 23, 3}, true, 32, 8}},
                                   {"resnext101-64x4d", {{3, 4, 23, 3}, true, 64, 4}}};

// ---- VGG: Simonyan & Zisserman 2015, with the names of torchvision ----

struct NamedVgg {
  std::string_view name;
  std::array<int64_t, 5> convolutions;  ///< before each pooling
};
/// Configurations A, B, D and E.
constexpr NamedVgg vggs[] = {{"vgg11", {1, 1, 2, 2, 2}},
                             {"vgg13", {2, 2, 2, 2, 2}},
                             {"vgg16", {2, 2, 3, 3, 3}},
                             {"vgg19", {2, 2, 4, 4, 4}}};

NetworkDescription describe_vgg(const NamedVgg& vgg, ArgumentReader& arguments) {
  const int64_t image_size = arguments.integer("image_size", 224);
  const int64_t classes = arguments.integer("num_classes", 1000);
  const double dropout = arguments.number("dropout", 0);
  NetworkDescription network{.name = std::string(vgg.name),
                             .input = Shape{3, image_size, image_size}};
  int64_t channels = 3;
  int64_t number = 0;
  const auto name = [&] { return fmt::format("features.{}", number++); };
  for (size_t stage = 0; stage < vgg.convolutions.size(); ++stage) {
    const int64_t width = std::min<int64_t>(int64_t{64} << stage, 512);
    for (int64_t i = 0; i < vgg.convolutions[stage]; ++i) {
      network.layers.push_back(named_layer("Conv2d", name(),
                                           {{"in_channels", channels},
                                            {"out_channels", width},
                                            {"kernel_size", int64_t{3}},
                                            {"padding", int64_t{1}}}));
      network.layers.push_back(named_layer("ReLU", name()));
      channels = width;
    }
    network.layers.push_back(named_layer("MaxPool2d", name(), {{"kernel_size", int64_t{2}}}));
  }
  constexpr int64_t pooled = 7;
  constexpr int64_t hidden = 4096;
  network.layers.push_back(named_layer("AdaptiveAvgPool2d", "avgpool", {{"", pooled}}));
  network.layers.push_back(named_layer("Flatten", "flatten"));
  const auto linear = [&](const char* place, int64_t in, int64_t out) {
    network.layers.push_back(named_layer("Linear", place, {{"", in}, {"", out}}));
  };
  linear("classifier.0", channels * pooled * pooled, hidden);
  network.layers.push_back(named_layer("ReLU", "classifier.1"));
  network.layers.push_back(named_layer("Dropout", "classifier.2", {{"p", dropout}}));
  linear("classifier.3", hidden, hidden);
  network.layers.push_back(named_layer("ReLU", "classifier.4"));
  network.layers.push_back(named_layer("Dropout", "classifier.5", {{"p", dropout}}));
  linear("classifier.6", hidden, classes);
  return network;
}

// ---- U-Net: Ronneberger et al. 2015, with padding and batch norm as
// github.com/milesial/Pytorch-UNet
// ----

void add_double_convolution(const std::string& name, int64_t in, int64_t out, Layers& layers) {
  for (const int64_t first : {0L, 3L}) {
    layers.push_back(
        convolution(fmt::format("{}.{}", name, first), first == 0 ? in : out, out, 3, 1));
    layers.push_back(batch_norm_of(fmt::format("{}.{}", name, first + 1), out));
    layers.push_back(named_layer("ReLU", fmt::format("{}.{}", name, first + 2)));
  }
}

constexpr int64_t unet_levels = 4;

/// What lies below `level`: pooled, convolved, gone through the levels below, and enlarged again.
/// Its result stands behind what went in.
void add_unet_level(int64_t level, Layers& layers) {
  const int64_t width = int64_t{64} << level;
  const int64_t up = unet_levels - level;
  LayerDescription joined = named_layer("Concatenate", fmt::format("skip{}", level + 1));
  Layers& inside = joined.layers;
  const std::string down = fmt::format("down{}.maxpool_conv", level + 1);
  inside.push_back(named_layer("MaxPool2d", down + ".0", {{"kernel_size", int64_t{2}}}));
  add_double_convolution(down + ".1.double_conv", width, 2 * width, inside);
  if (level + 1 < unet_levels) {
    add_unet_level(level + 1, inside);
  }
  inside.push_back(named_layer("ConvTranspose2d", fmt::format("up{}.up", up),
                               {{"in_channels", 2 * width},
                                {"out_channels", width},
                                {"kernel_size", int64_t{2}},
                                {"stride", int64_t{2}}}));
  layers.push_back(std::move(joined));
  add_double_convolution(fmt::format("up{}.conv.double_conv", up), 2 * width, width, layers);
}

NetworkDescription describe_unet(ArgumentReader& arguments) {
  const int64_t image_size = arguments.integer("image_size", 512);
  const int64_t classes = arguments.integer("num_classes", 1);
  NetworkDescription network{.name = "unet", .input = Shape{3, image_size, image_size}};
  add_double_convolution("inc.double_conv", 3, 64, network.layers);
  add_unet_level(0, network.layers);
  network.layers.push_back(named_layer(
      "Conv2d", "outc.conv",
      {{"in_channels", int64_t{64}}, {"out_channels", classes}, {"kernel_size", int64_t{1}}}));
  network.loss = {.kind = "BCEWithLogitsLoss"};
  return network;
}

// ---- Vision transformers, with the names of torchvision ----

struct NamedVit {
  std::string_view name;
  VitShape shape;
};

constexpr NamedVit vits[] = {{"vit-b-16", {12, 12, 768, 3072}},
                             {"vit-l-16", {24, 16, 1024, 4096}},
                             {"vit-h-14", {32, 16, 1280, 5120, 14}}};

void add_vit_block(const VitShape& shape, const std::string& name, double dropout, Layers& layers) {
  const auto norm = [&](const char* part) {
    return named_layer("LayerNorm", name + part, {{"", shape.width}, {"eps", shape.eps}});
  };
  const auto drop = [&](const char* part) {
    return named_layer("Dropout", name + part, {{"p", dropout}});
  };
  LayerDescription attention =
      residual("", {norm(".ln_1"),
                    named_layer("MultiheadAttention", name + ".self_attention",
                                {{"embed_dim", shape.width}, {"num_heads", shape.heads}}),
                    drop(".dropout")});
  LayerDescription perceptron =
      residual("", {norm(".ln_2"),
                    named_layer("Linear", name + ".mlp.0", {{"", shape.width}, {"", shape.hidden}}),
                    named_layer("GELU", name + ".mlp.1"), drop(".mlp.2"),
                    named_layer("Linear", name + ".mlp.3", {{"", shape.hidden}, {"", shape.width}}),
                    drop(".mlp.4")});
  layers.push_back(repeating_block("EncoderBlock", {std::move(attention), std::move(perceptron)}));
}

}  // namespace

NetworkDescription describe_vit(std::string_view name, const VitShape& shape, double dropout) {
  NetworkDescription network{.name = std::string(name),
                             .input = Shape{shape.channels, shape.image, shape.image}};
  const int64_t edge = shape.image / shape.patch;
  network.layers = {named_layer("Conv2d", "conv_proj",
                                {{"in_channels", shape.channels},
                                 {"out_channels", shape.width},
                                 {"kernel_size", shape.patch},
                                 {"stride", shape.patch}}),
                    named_layer("PatchSequence", "class_token", {{"channels", shape.width}}),
                    named_layer("PositionalEmbedding", "encoder.pos_embedding",
                                {{"", edge * edge + 1}, {"", shape.width}}),
                    named_layer("Dropout", "encoder.dropout", {{"p", dropout}})};
  for (int64_t block = 0; block < shape.layers; ++block) {
    add_vit_block(shape, fmt::format("encoder.layers.encoder_layer_{}", block), dropout,
                  network.layers);
  }
  network.layers.push_back(
      named_layer("LayerNorm", "encoder.ln", {{"", shape.width}, {"eps", shape.eps}}));
  network.layers.push_back(named_layer("FirstPosition", "first_position"));
  network.layers.push_back(
      named_layer("Linear", "heads.head", {{"", shape.width}, {"", shape.classes}}));
  return network;
}

std::optional<NetworkDescription> describe_image_preset(std::string_view name,
                                                        ArgumentReader& arguments) {
  if (const auto* resnet = std::ranges::find(resnets, name, &NamedResnet::name);
      resnet != std::end(resnets)) {
    return describe_resnet(name, resnet->shape, arguments);
  }
  if (const auto* vit = std::ranges::find(vits, name, &NamedVit::name); vit != std::end(vits)) {
    VitShape shape = vit->shape;
    shape.image = arguments.integer("image_size", shape.image);
    shape.classes = arguments.integer("num_classes", shape.classes);
    return describe_vit(name, shape, arguments.number("dropout", 0));
  }
  if (const auto* vgg = std::ranges::find(vggs, name, &NamedVgg::name); vgg != std::end(vggs)) {
    return describe_vgg(*vgg, arguments);
  }
  if (name.starts_with("densenet")) {
    return describe_densenet(name, arguments);
  }
  if (name == "unet") {
    return describe_unet(arguments);
  }
  std::optional<NetworkDescription> other = describe_mobile_preset(name, arguments);
  return other ? std::move(other) : describe_window_preset(name, arguments);
}

}  // namespace lockstep
