#include "model/network/presets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/network/argument_reader.hpp"
#include "model/network/bert.hpp"
#include "model/network/published.hpp"

namespace lockstep {

namespace {

constexpr std::string_view mistral_source =
    "Jiang et al. 2023, Mistral 7B v0.1; sliding window 4096";
constexpr std::string_view mixtral_source =
    "Jiang et al. 2024; config.json of the published checkpoints";

NetworkDescription describe_mlp(ArgumentReader& arguments) {
  const int64_t in_features = arguments.integer("in_features", 32);
  const int64_t hidden_size = arguments.integer("hidden_size", 64);
  const int64_t classes = arguments.integer("num_classes", 2);
  return {.name = "mlp",
          .input = Shape{in_features},
          .layers = {named_layer("Linear", "0", {{"", in_features}, {"", hidden_size}}),
                     named_layer("ReLU", "1"),
                     named_layer("Linear", "2", {{"", hidden_size}, {"", classes}})}};
}

}  // namespace

LayerDescription named_layer(std::string kind, std::string name, Arguments arguments) {
  arguments.push_back({"name", std::move(name)});
  return {.kind = std::move(kind), .arguments = std::move(arguments)};
}

LayerDescription residual(std::string name, Layers layers, Layers shortcut) {
  LayerDescription block = named_layer("Residual", std::move(name));
  block.layers = std::move(layers);
  block.shortcut = std::move(shortcut);
  return block;
}

LayerDescription repeating_block(std::string class_name, Layers layers) {
  LayerDescription sequential = named_layer("Sequential", "");
  sequential.layers = std::move(layers);
  sequential.block_class = std::move(class_name);
  return sequential;
}

std::vector<NetworkPreset> network_presets() {
  const std::vector<std::string_view> image = {"image_size", "num_classes"};
  const std::vector<std::string_view> text = {"seq_len", "vocab_size", "dropout"};
  const std::string_view resnet = "He et al. 2016; torchvision.models.resnet";
  const std::string_view gpt = "Radford et al. 2019; the published GPT-2 checkpoints";
  const std::string_view bert = "Devlin et al. 2019; transformers.BertModel";
  const std::string_view gpt3 = "Brown et al. 2020, table 2.1; attention is dense in every layer";
  const std::vector<std::string_view> picture = {"image_size", "num_classes", "dropout"};
  const std::vector<std::string_view> tokens = {"seq_len", "vocab_size"};
  const std::string_view megatron = "Narayanan et al. 2021, table 1; vocabulary 51200";
  const std::string_view llama = "Touvron et al. 2023; config.json of the published checkpoints";
  const std::string_view llama3 =
      "Grattafiori et al. 2024; config.json of the published checkpoints";
  const std::string_view vgg =
      "Simonyan & Zisserman 2015, configuration D; torchvision.models.vgg16";
  const std::string_view vit = "Dosovitskiy et al. 2021; torchvision.models.vision_transformer";
  const std::string_view unet =
      "Ronneberger et al. 2015, padded and with batch norm: github.com/milesial/Pytorch-UNet";
  return {
      {"mlp", "two-layer perceptron 32-64-2", "", {"in_features", "hidden_size", "num_classes"}},
      {"resnet18", "ResNet-18, 11.7 M parameters", resnet, image},
      {"resnet34", "ResNet-34, 21.8 M parameters", resnet, image},
      {"resnet50", "ResNet-50 v1.5, 25.6 M parameters", resnet, image},
      {"resnet101", "ResNet-101 v1.5, 44.5 M parameters", resnet, image},
      {"resnet152", "ResNet-152 v1.5, 60.2 M parameters", resnet, image},
      {"vgg16", "VGG-16, 138.4 M parameters", vgg, picture},
      {"vit-b-16", "ViT-B/16, 86.6 M parameters", vit, picture},
      {"vit-l-16", "ViT-L/16, 304.3 M parameters", vit, picture},
      {"vit-h-14", "ViT-H/14, 632.0 M parameters", vit, picture},
      {"unet", "U-Net, 31.0 M parameters", unet, image},
      {"gpt2", "GPT-2, 124 M parameters", gpt, text},
      {"gpt2-medium", "GPT-2 medium, 355 M parameters", gpt, text},
      {"gpt2-large", "GPT-2 large, 774 M parameters", gpt, text},
      {"gpt2-xl", "GPT-2 XL, 1.56 G parameters", gpt, text},
      {"bert-base", "BERT base, 109 M parameters without heads", bert, text},
      {"bert-large", "BERT large, 335 M parameters without heads", bert, text},
      {"gpt3-6.7b", "GPT-3 6.7 B, 6.66 G parameters", gpt3, text},
      {"gpt3-13b", "GPT-3 13 B, 12.9 G parameters", gpt3, text},
      {"gpt3-175b", "GPT-3 175 B, 174.6 G parameters", gpt3, text},
      {"megatron-1.7b", "GPT of Megatron's table, 1.7 G parameters", megatron, text},
      {"megatron-3.6b", "GPT of Megatron's table, 3.6 G parameters", megatron, text},
      {"megatron-7.5b", "GPT of Megatron's table, 7.5 G parameters", megatron, text},
      {"megatron-18.4b", "GPT of Megatron's table, 18.4 G parameters", megatron, text},
      {"megatron-39.1b", "GPT of Megatron's table, 39.1 G parameters", megatron, text},
      {"megatron-76.1b", "GPT of Megatron's table, 76.1 G parameters", megatron, text},
      {"megatron-145.6b", "GPT of Megatron's table, 145.6 G parameters", megatron, text},
      {"megatron-310.1b", "GPT of Megatron's table, 310.1 G parameters", megatron, text},
      {"megatron-529.6b", "GPT of Megatron's table, 529.6 G parameters", megatron, text},
      {"megatron-1t", "GPT of Megatron's table, 1008.0 G parameters", megatron, text},
      {"llama2-7b", "Llama 2 7B, 6.74 G parameters", llama, tokens},
      {"llama2-13b", "Llama 2 13B, 13.0 G parameters", llama, tokens},
      {"llama2-70b", "Llama 2 70B, 69.0 G parameters", llama, tokens},
      {"llama3-8b", "Llama 3 8B, 8.03 G parameters", llama3, tokens},
      {"llama3-70b", "Llama 3 70B, 70.6 G parameters", llama3, tokens},
      {"llama3-405b", "Llama 3.1 405B, 405.9 G parameters", llama3, tokens},
      {"mistral-7b", "Mistral 7B, 7.24 G parameters", mistral_source, tokens},
      {"mixtral-8x7b", "Mixtral 8x7B, 46.7 G parameters, 12.9 G active", mixtral_source, tokens},
      {"mixtral-8x22b", "Mixtral 8x22B, 140.6 G parameters, 39.2 G active", mixtral_source, tokens},
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
  std::optional<NetworkDescription> described =
      name.starts_with("bert") ? describe_bert(name, reader) : describe_text_preset(name, reader);
  if (!described) {
    described = describe_image_preset(name, reader);
  }
  NetworkDescription description = described ? std::move(*described) : describe_mlp(reader);
  reader.finish();
  if (!reader.ok()) {
    NetworkError error = reader.errors().front();
    error.path = "preset";
    return error;
  }
  return description;
}

}  // namespace lockstep
