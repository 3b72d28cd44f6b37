// What people call published networks.
#include <array>

#include "model/network/presets.hpp"

namespace lockstep {

namespace {

constexpr auto aliases = std::to_array<PresetAlias>({
    {"perceptron", "mlp"},
    {"gpt2-small", "gpt2"},
    {"gpt2-m", "gpt2-medium"},
    {"gpt2-l", "gpt2-large"},
    {"openai-community/gpt2", "gpt2"},
    {"openai-community/gpt2-medium", "gpt2-medium"},
    {"openai-community/gpt2-large", "gpt2-large"},
    {"openai-community/gpt2-xl", "gpt2-xl"},
});

// The nearest in kind, then in parameters.
constexpr auto others = std::to_array<UnmodelledPreset>({
    {"distilbert", "bert-base"},
    {"roberta-base", "bert-base"},
    {"roberta-large", "bert-large"},
    {"t5-small", "gpt2"},
    {"t5-base", "gpt2"},
    {"t5-large", "gpt2-large"},
    {"t5-3b", "gpt2-xl"},
    {"t5-11b", "gpt2-xl"},
    {"gpt-neo", "gpt2-xl"},
    {"gpt-j", "gpt3-6.7b"},
    {"gpt3", "gpt3-6.7b"},
    {"gpt4", "gpt3-175b"},
    {"opt-1.3b", "gpt2-xl"},
    {"opt-175b", "gpt3-175b"},
    {"bloom", "gpt3-175b"},
    {"llama-7b", "gpt3-6.7b"},
    {"llama2", "gpt3-6.7b"},
    {"llama2-7b", "gpt3-6.7b"},
    {"llama2-13b", "gpt3-13b"},
    {"llama2-70b", "gpt3-175b"},
    {"llama3", "gpt3-6.7b"},
    {"llama3-8b", "gpt3-6.7b"},
    {"llama3-70b", "gpt3-175b"},
    {"llama3-405b", "gpt3-175b"},
    {"mistral-7b", "gpt3-6.7b"},
    {"mixtral-8x7b", "gpt3-175b"},
    {"mixtral-8x22b", "gpt3-175b"},
    {"vit-b-16", "resnet50"},
    {"vit-l-16", "resnet50"},
    {"vit-h-14", "resnet50"},
    {"resnet34", "resnet18"},
    {"resnet101", "resnet50"},
    {"resnet152", "resnet50"},
    {"wide-resnet50", "resnet50"},
    {"resnext50", "resnet50"},
    {"resnext101", "resnet50"},
    {"densenet121", "resnet18"},
    {"efficientnet-b0", "resnet18"},
    {"mobilenet-v2", "resnet18"},
    {"mobilenet-v3", "resnet18"},
    {"alexnet", "resnet18"},
    {"vgg16", "resnet50"},
    {"vgg19", "resnet50"},
    {"inception-v3", "resnet50"},
    {"convnext", "resnet50"},
    {"swin", "resnet50"},
    {"unet", "resnet18"},
    {"stable-diffusion", "gpt2-large"},
});

}  // namespace

std::span<const PresetAlias> network_aliases() { return aliases; }
std::span<const UnmodelledPreset> unmodelled_networks() { return others; }

PresetAnswer find_network_name(std::string_view asked) {
  std::vector<std::string_view> names;
  for (const NetworkPreset& preset : network_presets()) {
    names.push_back(preset.name);
  }
  return find_preset_name(asked, names, aliases, others);
}

std::vector<std::string> network_spellings() {
  std::vector<std::string> all;
  for (const NetworkPreset& preset : network_presets()) {
    all.emplace_back(preset.name);
  }
  for (const PresetAlias& alias : aliases) {
    all.emplace_back(alias.alias);
  }
  for (const UnmodelledPreset& other : others) {
    all.emplace_back(other.name);
  }
  return all;
}

}  // namespace lockstep
