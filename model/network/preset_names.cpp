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
    {"meta-llama/Llama-2-7b-hf", "llama2-7b"},
    {"meta-llama/Llama-2-13b-hf", "llama2-13b"},
    {"meta-llama/Llama-2-70b-hf", "llama2-70b"},
    {"meta-llama/Meta-Llama-3-8B", "llama3-8b"},
    {"meta-llama/Meta-Llama-3-70B", "llama3-70b"},
    {"meta-llama/Llama-3.1-405B", "llama3-405b"},
    {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
    {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
    {"mistralai/Mixtral-8x22B-v0.1", "mixtral-8x22b"},
    {"bert-base-uncased", "bert-base"},
    {"bert-large-uncased", "bert-large"},
    {"google/vit-base-patch16-224", "vit-b-16"},
    {"google/vit-large-patch16-224", "vit-l-16"},
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
    {"t5-11b", "gpt3-13b"},
    {"gpt-neo", "gpt2-xl"},
    {"gpt-j", "gpt3-6.7b"},
    {"gpt3", "gpt3-6.7b"},
    {"gpt4", "gpt3-175b"},
    {"opt-1.3b", "gpt2-xl"},
    {"opt-175b", "gpt3-175b"},
    {"bloom", "gpt3-175b"},
    {"llama-7b", "llama2-7b"},
    {"llama2", "llama2-7b"},
    {"llama3", "llama3-8b"},
    {"wide-resnet50", "resnet50"},
    {"resnext50", "resnet50"},
    {"resnext101", "resnet101"},
    {"densenet121", "resnet18"},
    {"efficientnet-b0", "resnet18"},
    {"mobilenet-v2", "resnet18"},
    {"mobilenet-v3", "resnet18"},
    {"alexnet", "resnet18"},
    {"vgg19", "vgg16"},
    {"inception-v3", "resnet50"},
    {"convnext", "resnet50"},
    {"swin", "vit-b-16"},
    {"stable-diffusion", "unet"},
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
