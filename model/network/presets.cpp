#include "model/network/presets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/network/argument_reader.hpp"
#include "model/network/bert.hpp"

namespace lockstep {

namespace {

using Arguments = std::vector<NamedArgument>;
using Layers = std::vector<LayerDescription>;

LayerDescription layer(std::string kind, std::string name, Arguments arguments = {}) {
  arguments.push_back({"name", std::move(name)});
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

LayerDescription residual(std::string name, Layers layers, Layers shortcut = {}) {
  LayerDescription block = layer("Residual", std::move(name));
  block.layers = std::move(layers);
  block.shortcut = std::move(shortcut);
  return block;
}

/// What repeats; without a name it adds no level to the names inside.
LayerDescription repeating_block(std::string class_name, Layers layers) {
  LayerDescription sequential = layer("Sequential", "");
  sequential.layers = std::move(layers);
  sequential.block_class = std::move(class_name);
  return sequential;
}

NetworkDescription describe_mlp(ArgumentReader& arguments) {
  const int64_t in_features = arguments.integer("in_features", 32);
  const int64_t hidden_size = arguments.integer("hidden_size", 64);
  const int64_t classes = arguments.integer("num_classes", 2);
  return {.name = "mlp",
          .input = Shape{in_features},
          .layers = {layer("Linear", "0", {{"", in_features}, {"", hidden_size}}),
                     layer("ReLU", "1"), layer("Linear", "2", {{"", hidden_size}, {"", classes}})}};
}

// ---- ResNet: He et al. 2016, with the stride on the 3x3 convolution as in torchvision (v1.5) ----

LayerDescription convolution(std::string name, int64_t in, int64_t out, int64_t kernel,
                             int64_t stride) {
  return layer("Conv2d", std::move(name),
               {{"in_channels", in},
                {"out_channels", out},
                {"kernel_size", kernel},
                {"stride", stride},
                {"padding", kernel / 2},
                {"bias", false}});
}

LayerDescription norm(std::string name, int64_t channels) {
  return layer("BatchNorm2d", std::move(name), {{"num_features", channels}});
}

struct ResnetShape {
  std::array<int64_t, 4> blocks;
  bool is_bottleneck;
};

Layers resnet_branch(const ResnetShape& shape, int64_t in, int64_t width, int64_t out,
                     int64_t stride) {
  if (!shape.is_bottleneck) {
    return {convolution("conv1", in, width, 3, stride), norm("bn1", width), layer("ReLU", "relu"),
            convolution("conv2", width, out, 3, 1), norm("bn2", out)};
  }
  return {convolution("conv1", in, width, 1, 1),         norm("bn1", width), layer("ReLU", "relu1"),
          convolution("conv2", width, width, 3, stride), norm("bn2", width), layer("ReLU", "relu2"),
          convolution("conv3", width, out, 1, 1),        norm("bn3", out)};
}

/// Adds one block to `layers` and returns its number of output channels.
int64_t add_resnet_block(const ResnetShape& shape, int64_t stage, int64_t block, int64_t in,
                         Layers& layers) {
  const int64_t width = int64_t{64} << stage;
  const int64_t out = shape.is_bottleneck ? 4 * width : width;
  const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
  Layers shortcut;
  if (stride != 1 || in != out) {
    shortcut = {convolution("downsample.0", in, out, 1, stride), norm("downsample.1", out)};
  }
  const std::string name = fmt::format("layer{}.{}", stage + 1, block);
  layers.push_back(repeating_block(
      shape.is_bottleneck ? "Bottleneck" : "BasicBlock",
      {residual(name, resnet_branch(shape, in, width, out, stride), std::move(shortcut)),
       layer("ReLU", name + ".relu_out")}));
  return out;
}

NetworkDescription describe_resnet(std::string_view name, const ResnetShape& shape,
                                   ArgumentReader& arguments) {
  const int64_t image_size = arguments.integer("image_size", 224);
  const int64_t classes = arguments.integer("num_classes", 1000);
  NetworkDescription network{.name = std::string(name), .input = Shape{3, image_size, image_size}};
  network.layers = {
      convolution("conv1", 3, 64, 7, 2), norm("bn1", 64), layer("ReLU", "relu"),
      layer("MaxPool2d", "maxpool",
            {{"kernel_size", int64_t{3}}, {"stride", int64_t{2}}, {"padding", int64_t{1}}})};
  int64_t channels = 64;
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (int64_t block = 0; block < shape.blocks[static_cast<size_t>(stage)]; ++block) {
      channels = add_resnet_block(shape, stage, block, channels, network.layers);
    }
  }
  network.layers.push_back(layer("AdaptiveAvgPool2d", "avgpool", {{"", int64_t{1}}}));
  network.layers.push_back(layer("Flatten", "flatten"));
  network.layers.push_back(layer("Linear", "fc", {{"", channels}, {"", classes}}));
  return network;
}

// ---- GPT-2: Radford et al. 2019; sizes of the published checkpoints, pre-norm, tied embedding.
// GPT-3: Brown et al. 2020, table 2.1, of the same structure; every layer's attention is dense
// here.
// ----

struct GptShape {
  int64_t layers;
  int64_t heads;
  int64_t width;
  int64_t positions = 1024;
};

struct NamedGpt {
  std::string_view name;
  GptShape shape;
};

constexpr NamedGpt gpts[] = {{"gpt2", {12, 12, 768}},
                             {"gpt2-medium", {24, 16, 1024}},
                             {"gpt2-large", {36, 20, 1280}},
                             {"gpt2-xl", {48, 25, 1600}},
                             {"gpt3-6.7b", {32, 32, 4096, 2048}},
                             {"gpt3-13b", {40, 40, 5120, 2048}},
                             {"gpt3-175b", {96, 96, 12288, 2048}}};

void add_gpt_block(const GptShape& shape, const std::string& name, double dropout, Layers& layers) {
  const int64_t width = shape.width;
  LayerDescription attention =
      residual("", {layer("LayerNorm", name + ".ln_1", {{"", width}}),
                    layer("CausalSelfAttention", name + ".attn",
                          {{"embed_dim", width}, {"num_heads", shape.heads}, {"dropout", dropout}}),
                    layer("Dropout", name + ".attn.resid_dropout", {{"p", dropout}})});
  LayerDescription perceptron =
      residual("", {layer("LayerNorm", name + ".ln_2", {{"", width}}),
                    layer("Linear", name + ".mlp.c_fc", {{"", width}, {"", 4 * width}}),
                    layer("GELU", name + ".mlp.act", {{"approximate", std::string("tanh")}}),
                    layer("Linear", name + ".mlp.c_proj", {{"", 4 * width}, {"", width}}),
                    layer("Dropout", name + ".mlp.dropout", {{"p", dropout}})});
  layers.push_back(repeating_block("GPT2Block", {std::move(attention), std::move(perceptron)}));
}

NetworkDescription describe_gpt(std::string_view name, const GptShape& shape,
                                ArgumentReader& arguments) {
  const int64_t seq_len = arguments.integer("seq_len", shape.positions);
  const int64_t vocabulary = arguments.integer("vocab_size", 50257);
  const double dropout = arguments.number("dropout", 0.1);
  NetworkDescription network{
      .name = std::string(name), .input = Shape{seq_len}, .input_dtype = DType::int64};
  // Published checkpoints have so many positions; a longer sequence needs as many as it is long.
  const int64_t positions = std::max(shape.positions, seq_len);
  network.layers = {
      layer("Embedding", "transformer.wte", {{"", vocabulary}, {"", shape.width}}),
      layer("PositionalEmbedding", "transformer.wpe", {{"", positions}, {"", shape.width}}),
      layer("Dropout", "transformer.drop", {{"p", dropout}})};
  for (int64_t block = 0; block < shape.layers; ++block) {
    add_gpt_block(shape, fmt::format("transformer.h.{}", block), dropout, network.layers);
  }
  network.layers.push_back(layer("LayerNorm", "transformer.ln_f", {{"", shape.width}}));
  network.layers.push_back(layer("Linear", "lm_head",
                                 {{"", shape.width},
                                  {"", vocabulary},
                                  {"bias", false},
                                  {"tied_to", std::string("transformer.wte")}}));
  return network;
}

NetworkDescription describe(std::string_view name, ArgumentReader& arguments) {
  if (name == "mlp") {
    return describe_mlp(arguments);
  }
  if (name == "resnet18") {
    return describe_resnet(name, {{2, 2, 2, 2}, false}, arguments);
  }
  if (name == "resnet50") {
    return describe_resnet(name, {{3, 4, 6, 3}, true}, arguments);
  }
  if (name.starts_with("bert")) {
    return describe_bert(name, arguments);
  }
  const auto* gpt = std::ranges::find(gpts, name, &NamedGpt::name);
  return describe_gpt(name, gpt->shape, arguments);
}

}  // namespace

std::vector<NetworkPreset> network_presets() {
  const std::vector<std::string_view> image = {"image_size", "num_classes"};
  const std::vector<std::string_view> text = {"seq_len", "vocab_size", "dropout"};
  const std::string_view resnet = "He et al. 2016; torchvision.models.resnet";
  const std::string_view gpt = "Radford et al. 2019; the published GPT-2 checkpoints";
  const std::string_view bert = "Devlin et al. 2019; transformers.BertModel";
  const std::string_view gpt3 = "Brown et al. 2020, table 2.1; attention is dense in every layer";
  return {
      {"mlp", "two-layer perceptron 32-64-2", "", {"in_features", "hidden_size", "num_classes"}},
      {"resnet18", "ResNet-18, 11.7 M parameters", resnet, image},
      {"resnet50", "ResNet-50 v1.5, 25.6 M parameters", resnet, image},
      {"gpt2", "GPT-2, 124 M parameters", gpt, text},
      {"gpt2-medium", "GPT-2 medium, 355 M parameters", gpt, text},
      {"gpt2-large", "GPT-2 large, 774 M parameters", gpt, text},
      {"gpt2-xl", "GPT-2 XL, 1.56 G parameters", gpt, text},
      {"bert-base", "BERT base, 109 M parameters without heads", bert, text},
      {"bert-large", "BERT large, 335 M parameters without heads", bert, text},
      {"gpt3-6.7b", "GPT-3 6.7 B, 6.66 G parameters", gpt3, text},
      {"gpt3-13b", "GPT-3 13 B, 12.9 G parameters", gpt3, text},
      {"gpt3-175b", "GPT-3 175 B, 174.6 G parameters", gpt3, text},
  };
}

std::variant<NetworkDescription, NetworkError> describe_preset(
    std::string_view name, const std::vector<NamedArgument>& arguments) {
  const std::vector<NetworkPreset> presets = network_presets();
  const bool known = std::any_of(presets.begin(), presets.end(),
                                 [&](const NetworkPreset& preset) { return preset.name == name; });
  if (!known) {
    std::vector<std::string_view> names;
    for (const NetworkPreset& preset : presets) {
      names.push_back(preset.name);
    }
    return NetworkError{.path = "preset",
                        .message = fmt::format("no model preset is called {}", name),
                        .remedy = fmt::format("use one of: {}", fmt::join(names, ", "))};
  }
  const LayerDescription request{.kind = std::string(name), .arguments = arguments};
  ArgumentReader reader(request, {});
  NetworkDescription description = describe(name, reader);
  reader.finish();
  if (!reader.ok()) {
    NetworkError error = reader.errors().front();
    error.path = "preset";
    return error;
  }
  return description;
}

}  // namespace lockstep
