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
    {"meta-llama/Llama-3.1-8B", "llama3-8b"},
    {"llama3.1-8b", "llama3-8b"},
    {"meta-llama/Llama-3.1-70B", "llama3-70b"},
    {"llama3.1-70b", "llama3-70b"},
    {"llama3.1-405b", "llama3-405b"},
    {"meta-llama/Llama-3.2-1B", "llama3.2-1b"},
    {"meta-llama/Llama-3.2-3B", "llama3.2-3b"},
    {"TinyLlama/TinyLlama_v1.1", "tinyllama-1.1b"},
    {"microsoft/Phi-3-mini-4k-instruct", "phi3-mini"},
    {"Qwen/Qwen2.5-0.5B", "qwen2.5-0.5b"},
    {"Qwen/Qwen2.5-1.5B", "qwen2.5-1.5b"},
    {"Qwen/Qwen2.5-3B", "qwen2.5-3b"},
    {"Qwen/Qwen2.5-7B", "qwen2.5-7b"},
    {"Qwen/Qwen2.5-14B", "qwen2.5-14b"},
    {"Qwen/Qwen2.5-32B", "qwen2.5-32b"},
    {"Qwen/Qwen2.5-72B", "qwen2.5-72b"},
    {"facebook/bart-base", "bart-base"},
    {"facebook/bart-large", "bart-large"},
    {"google-t5/t5-small", "t5-small"},
    {"google-t5/t5-base", "t5-base"},
    {"google-t5/t5-large", "t5-large"},
    {"google-t5/t5-3b", "t5-3b"},
    {"google-t5/t5-11b", "t5-11b"},
    {"Qwen/Qwen3-0.6B", "qwen3-0.6b"},
    {"Qwen/Qwen3-1.7B", "qwen3-1.7b"},
    {"Qwen/Qwen3-4B", "qwen3-4b"},
    {"Qwen/Qwen3-8B", "qwen3-8b"},
    {"Qwen/Qwen3-14B", "qwen3-14b"},
    {"Qwen/Qwen3-32B", "qwen3-32b"},
    {"google/gemma-2b", "gemma-2b"},
    {"google/gemma-7b", "gemma-7b"},
    {"facebook/opt-125m", "opt-125m"},
    {"facebook/opt-1.3b", "opt-1.3b"},
    {"facebook/opt-2.7b", "opt-2.7b"},
    {"facebook/opt-6.7b", "opt-6.7b"},
    {"facebook/opt-13b", "opt-13b"},
    {"facebook/opt-30b", "opt-30b"},
    {"facebook/opt-66b", "opt-66b"},
    {"wide_resnet50_2", "wide-resnet50-2"},
    {"wide-resnet50", "wide-resnet50-2"},
    {"wide_resnet101_2", "wide-resnet101-2"},
    {"resnext50_32x4d", "resnext50-32x4d"},
    {"resnext50", "resnext50-32x4d"},
    {"resnext101_32x8d", "resnext101-32x8d"},
    {"resnext101_64x4d", "resnext101-64x4d"},
    {"mobilenet_v2", "mobilenet-v2"},
    {"mobilenetv2", "mobilenet-v2"},
    {"mobilenet_v3_small", "mobilenet-v3-small"},
    {"mobilenet_v3_large", "mobilenet-v3-large"},
    {"mobilenet-v3", "mobilenet-v3-large"},
    {"efficientnet_b0", "efficientnet-b0"},
    {"efficientnet_b1", "efficientnet-b1"},
    {"efficientnet_b2", "efficientnet-b2"},
    {"efficientnet_b3", "efficientnet-b3"},
    {"efficientnet_b4", "efficientnet-b4"},
    {"efficientnet_b5", "efficientnet-b5"},
    {"efficientnet_b6", "efficientnet-b6"},
    {"efficientnet_b7", "efficientnet-b7"},
    {"efficientnet_v2_s", "efficientnet-v2-s"},
    {"efficientnet_v2_m", "efficientnet-v2-m"},
    {"efficientnet_v2_l", "efficientnet-v2-l"},
    {"convnext_tiny", "convnext-tiny"},
    {"convnext_small", "convnext-small"},
    {"convnext_base", "convnext-base"},
    {"convnext_large", "convnext-large"},
    {"swin_t", "swin-tiny"},
    {"swin_s", "swin-small"},
    {"swin_b", "swin-base"},
    {"microsoft/swin-tiny-patch4-window7-224", "swin-tiny"},
    {"microsoft/swin-small-patch4-window7-224", "swin-small"},
    {"microsoft/swin-base-patch4-window7-224", "swin-base"},
    {"facebook/convnext-tiny-224", "convnext-tiny"},
    {"facebook/convnext-small-224", "convnext-small"},
    {"facebook/convnext-base-224", "convnext-base"},
    {"facebook/convnext-large-224", "convnext-large"},
    {"FacebookAI/roberta-base", "roberta-base"},
    {"FacebookAI/roberta-large", "roberta-large"},
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
    {"gpt-neo", "gpt2-xl"},
    {"gpt-j", "gpt3-6.7b"},
    {"gpt3", "gpt3-6.7b"},
    {"gpt4", "gpt3-175b"},
    {"opt-350m", "gpt2-medium"},
    {"gpt-neox-20b", "gpt3-13b"},
    {"gemma2-2b", "gemma-2b"},
    {"gemma2-9b", "gemma-7b"},
    {"falcon-7b", "llama2-7b"},
    {"deepseek-v3", "mixtral-8x22b"},
    {"bloom", "gpt3-175b"},
    {"llama-7b", "llama2-7b"},
    {"llama2", "llama2-7b"},
    {"llama3", "llama3-8b"},
    {"resnext101", "resnext101-32x8d"},
    {"alexnet", "resnet18"},
    {"inception-v3", "resnet50"},
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
