// The published networks that a scenario can name, in the order in which they are listed.
#include "model/network/presets.hpp"

namespace lockstep {

namespace {

/// What shape arguments a network takes.
enum class Takes : uint8_t {
  perceptron,
  image,
  image_and_dropout,
  image_and_depth,
  image_dropout_and_depth,
  text,
  text_and_dropout,
  two_texts
};

struct ListedPreset {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  Takes takes;
};

constexpr std::string_view resnet_source = "He et al. 2016; torchvision.models.resnet";
constexpr std::string_view wide_source = "Zagoruyko & Komodakis 2016; torchvision.models.resnet";
constexpr std::string_view resnext_source = "Xie et al. 2017; torchvision.models.resnet";
constexpr std::string_view vgg_source =
    "Simonyan & Zisserman 2015, configurations A, B, D and E; torchvision.models.vgg";
constexpr std::string_view densenet_source = "Huang et al. 2017; torchvision.models.densenet";
constexpr std::string_view vit_source =
    "Dosovitskiy et al. 2021; torchvision.models.vision_transformer";
constexpr std::string_view unet_source =
    "Ronneberger et al. 2015, padded and with batch norm: github.com/milesial/Pytorch-UNet";
constexpr std::string_view mobilenet2_source =
    "Sandler et al. 2018; torchvision.models.mobilenetv2";
constexpr std::string_view mobilenet3_source = "Howard et al. 2019; torchvision.models.mobilenetv3";
constexpr std::string_view efficientnet_source =
    "Tan & Le 2019; torchvision.models.efficientnet, its image sizes";
constexpr std::string_view efficientnet2_source =
    "Tan & Le 2021; torchvision.models.efficientnet, its image sizes";
constexpr std::string_view convnext_source = "Liu et al. 2022; torchvision.models.convnext";
constexpr std::string_view swin_source = "Liu et al. 2021; torchvision.models.swin_transformer";
constexpr std::string_view gpt_source = "Radford et al. 2019; the published GPT-2 checkpoints";
constexpr std::string_view bert_source = "Devlin et al. 2019; transformers.BertModel";
constexpr std::string_view roberta_source = "Liu et al. 2019; transformers.RobertaModel";
constexpr std::string_view gpt3_source =
    "Brown et al. 2020, table 2.1; attention is dense in every layer";
constexpr std::string_view t5_source =
    "Raffel et al. 2020; transformers.T5ForConditionalGeneration";
constexpr std::string_view bart_source =
    "Lewis et al. 2020; transformers.BartForConditionalGeneration";
constexpr std::string_view opt_source = "Zhang et al. 2022, table 1; transformers.OPTForCausalLM";
constexpr std::string_view megatron_source = "Narayanan et al. 2021, table 1; vocabulary 51200";
constexpr std::string_view llama_source =
    "Touvron et al. 2023; config.json of the published checkpoints";
constexpr std::string_view llama3_source =
    "Grattafiori et al. 2024; config.json of the published checkpoints";
constexpr std::string_view tinyllama_source =
    "Zhang et al. 2024; config.json of the published checkpoint";
constexpr std::string_view mistral_source =
    "Jiang et al. 2023, Mistral 7B v0.1; sliding window 4096";
constexpr std::string_view phi3_source =
    "Abdin et al. 2024; config.json of the published checkpoint";
constexpr std::string_view qwen_source = "Qwen Team 2024; config.json of the published checkpoints";
constexpr std::string_view qwen3_source =
    "Qwen Team 2025; config.json of the published checkpoints";
constexpr std::string_view gemma_source =
    "Gemma Team 2024; config.json of the published checkpoints";
constexpr std::string_view mixtral_source =
    "Jiang et al. 2024; config.json of the published checkpoints";

constexpr ListedPreset listed[] = {
    {"mlp", "two-layer perceptron 32-64-2", "", Takes::perceptron},
    {"resnet18", "ResNet-18, 11.7 M parameters", resnet_source, Takes::image},
    {"resnet34", "ResNet-34, 21.8 M parameters", resnet_source, Takes::image},
    {"resnet50", "ResNet-50 v1.5, 25.6 M parameters", resnet_source, Takes::image},
    {"resnet101", "ResNet-101 v1.5, 44.5 M parameters", resnet_source, Takes::image},
    {"resnet152", "ResNet-152 v1.5, 60.2 M parameters", resnet_source, Takes::image},
    {"wide-resnet50-2", "Wide ResNet-50-2, 68.9 M parameters", wide_source, Takes::image},
    {"wide-resnet101-2", "Wide ResNet-101-2, 126.9 M parameters", wide_source, Takes::image},
    {"resnext50-32x4d", "ResNeXt-50 32x4d, 25.0 M parameters", resnext_source, Takes::image},
    {"resnext101-32x8d", "ResNeXt-101 32x8d, 88.8 M parameters", resnext_source, Takes::image},
    {"resnext101-64x4d", "ResNeXt-101 64x4d, 83.5 M parameters", resnext_source, Takes::image},
    {"vgg11", "VGG-11, 132.9 M parameters", vgg_source, Takes::image_and_dropout},
    {"vgg13", "VGG-13, 133.0 M parameters", vgg_source, Takes::image_and_dropout},
    {"vgg16", "VGG-16, 138.4 M parameters", vgg_source, Takes::image_and_dropout},
    {"vgg19", "VGG-19, 143.7 M parameters", vgg_source, Takes::image_and_dropout},
    {"densenet121", "DenseNet-121, 8.0 M parameters", densenet_source, Takes::image},
    {"densenet161", "DenseNet-161, 28.7 M parameters", densenet_source, Takes::image},
    {"densenet169", "DenseNet-169, 14.1 M parameters", densenet_source, Takes::image},
    {"densenet201", "DenseNet-201, 20.0 M parameters", densenet_source, Takes::image},
    {"vit-b-16", "ViT-B/16, 86.6 M parameters", vit_source, Takes::image_and_dropout},
    {"vit-l-16", "ViT-L/16, 304.3 M parameters", vit_source, Takes::image_and_dropout},
    {"vit-h-14", "ViT-H/14, 632.0 M parameters", vit_source, Takes::image_and_dropout},
    {"unet", "U-Net, 31.0 M parameters", unet_source, Takes::image},
    {"mobilenet-v2", "MobileNetV2, 3.5 M parameters", mobilenet2_source, Takes::image_and_dropout},
    {"mobilenet-v3-small", "MobileNetV3 small, 2.5 M parameters", mobilenet3_source,
     Takes::image_and_dropout},
    {"mobilenet-v3-large", "MobileNetV3 large, 5.5 M parameters", mobilenet3_source,
     Takes::image_and_dropout},
    {"efficientnet-b0", "EfficientNet-B0, 5.3 M parameters", efficientnet_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-b1", "EfficientNet-B1, 7.8 M parameters", efficientnet_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-b2", "EfficientNet-B2, 9.1 M parameters", efficientnet_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-b3", "EfficientNet-B3, 12.2 M parameters", efficientnet_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-b4", "EfficientNet-B4, 19.3 M parameters", efficientnet_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-b5", "EfficientNet-B5, 30.4 M parameters", efficientnet_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-b6", "EfficientNet-B6, 43.0 M parameters", efficientnet_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-b7", "EfficientNet-B7, 66.3 M parameters", efficientnet_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-v2-s", "EfficientNetV2-S, 21.5 M parameters", efficientnet2_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-v2-m", "EfficientNetV2-M, 54.1 M parameters", efficientnet2_source,
     Takes::image_dropout_and_depth},
    {"efficientnet-v2-l", "EfficientNetV2-L, 118.5 M parameters", efficientnet2_source,
     Takes::image_dropout_and_depth},
    {"convnext-tiny", "ConvNeXt tiny, 28.6 M parameters", convnext_source, Takes::image_and_depth},
    {"convnext-small", "ConvNeXt small, 50.2 M parameters", convnext_source,
     Takes::image_and_depth},
    {"convnext-base", "ConvNeXt base, 88.6 M parameters", convnext_source, Takes::image_and_depth},
    {"convnext-large", "ConvNeXt large, 197.8 M parameters", convnext_source,
     Takes::image_and_depth},
    {"swin-tiny", "Swin tiny, 28.3 M parameters", swin_source, Takes::image_and_depth},
    {"swin-small", "Swin small, 49.6 M parameters", swin_source, Takes::image_and_depth},
    {"swin-base", "Swin base, 87.8 M parameters", swin_source, Takes::image_and_depth},
    {"gpt2", "GPT-2, 124 M parameters", gpt_source, Takes::text_and_dropout},
    {"gpt2-medium", "GPT-2 medium, 355 M parameters", gpt_source, Takes::text_and_dropout},
    {"gpt2-large", "GPT-2 large, 774 M parameters", gpt_source, Takes::text_and_dropout},
    {"gpt2-xl", "GPT-2 XL, 1.56 G parameters", gpt_source, Takes::text_and_dropout},
    {"bert-base", "BERT base, 109 M parameters without heads", bert_source,
     Takes::text_and_dropout},
    {"bert-large", "BERT large, 335 M parameters without heads", bert_source,
     Takes::text_and_dropout},
    {"roberta-base", "RoBERTa base, 125 M parameters without heads", roberta_source,
     Takes::text_and_dropout},
    {"roberta-large", "RoBERTa large, 355 M parameters without heads", roberta_source,
     Takes::text_and_dropout},
    {"gpt3-6.7b", "GPT-3 6.7 B, 6.66 G parameters", gpt3_source, Takes::text_and_dropout},
    {"gpt3-13b", "GPT-3 13 B, 12.9 G parameters", gpt3_source, Takes::text_and_dropout},
    {"gpt3-175b", "GPT-3 175 B, 174.6 G parameters", gpt3_source, Takes::text_and_dropout},
    {"t5-small", "T5 small, 60.5 M parameters", t5_source, Takes::two_texts},
    {"t5-base", "T5 base, 222.9 M parameters", t5_source, Takes::two_texts},
    {"t5-large", "T5 large, 737.7 M parameters", t5_source, Takes::two_texts},
    {"t5-3b", "T5 3B, 2.85 G parameters", t5_source, Takes::two_texts},
    {"t5-11b", "T5 11B, 11.3 G parameters", t5_source, Takes::two_texts},
    {"bart-base", "BART base, 139.4 M parameters", bart_source, Takes::two_texts},
    {"bart-large", "BART large, 406.3 M parameters", bart_source, Takes::two_texts},
    {"opt-125m", "OPT-125M, 125 M parameters", opt_source, Takes::text_and_dropout},
    {"opt-1.3b", "OPT-1.3B, 1.32 G parameters", opt_source, Takes::text_and_dropout},
    {"opt-2.7b", "OPT-2.7B, 2.65 G parameters", opt_source, Takes::text_and_dropout},
    {"opt-6.7b", "OPT-6.7B, 6.66 G parameters", opt_source, Takes::text_and_dropout},
    {"opt-13b", "OPT-13B, 12.9 G parameters", opt_source, Takes::text_and_dropout},
    {"opt-30b", "OPT-30B, 30.0 G parameters", opt_source, Takes::text_and_dropout},
    {"opt-66b", "OPT-66B, 65.7 G parameters", opt_source, Takes::text_and_dropout},
    {"opt-175b", "OPT-175B, 174.6 G parameters", opt_source, Takes::text_and_dropout},
    {"megatron-1.7b", "GPT of Megatron's table, 1.7 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-3.6b", "GPT of Megatron's table, 3.6 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-7.5b", "GPT of Megatron's table, 7.5 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-18.4b", "GPT of Megatron's table, 18.4 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-39.1b", "GPT of Megatron's table, 39.1 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-76.1b", "GPT of Megatron's table, 76.1 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-145.6b", "GPT of Megatron's table, 145.6 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-310.1b", "GPT of Megatron's table, 310.1 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-529.6b", "GPT of Megatron's table, 529.6 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"megatron-1t", "GPT of Megatron's table, 1008.0 G parameters", megatron_source,
     Takes::text_and_dropout},
    {"llama2-7b", "Llama 2 7B, 6.74 G parameters", llama_source, Takes::text},
    {"llama2-13b", "Llama 2 13B, 13.0 G parameters", llama_source, Takes::text},
    {"llama2-70b", "Llama 2 70B, 69.0 G parameters", llama_source, Takes::text},
    {"llama3-8b", "Llama 3 8B, 8.03 G parameters", llama3_source, Takes::text},
    {"llama3-70b", "Llama 3 70B, 70.6 G parameters", llama3_source, Takes::text},
    {"llama3-405b", "Llama 3.1 405B, 405.9 G parameters", llama3_source, Takes::text},
    {"llama3.2-1b", "Llama 3.2 1B, 1.24 G parameters", llama3_source, Takes::text},
    {"llama3.2-3b", "Llama 3.2 3B, 3.21 G parameters", llama3_source, Takes::text},
    {"tinyllama-1.1b", "TinyLlama, 1.10 G parameters", tinyllama_source, Takes::text},
    {"mistral-7b", "Mistral 7B, 7.24 G parameters", mistral_source, Takes::text},
    {"phi3-mini", "Phi-3 mini 4k, 3.82 G parameters", phi3_source, Takes::text},
    {"qwen2.5-0.5b", "Qwen2.5 0.5B, 494 M parameters", qwen_source, Takes::text},
    {"qwen2.5-1.5b", "Qwen2.5 1.5B, 1.54 G parameters", qwen_source, Takes::text},
    {"qwen2.5-3b", "Qwen2.5 3B, 3.09 G parameters", qwen_source, Takes::text},
    {"qwen2.5-7b", "Qwen2.5 7B, 7.62 G parameters", qwen_source, Takes::text},
    {"qwen2.5-14b", "Qwen2.5 14B, 14.8 G parameters", qwen_source, Takes::text},
    {"qwen2.5-32b", "Qwen2.5 32B, 32.8 G parameters", qwen_source, Takes::text},
    {"qwen2.5-72b", "Qwen2.5 72B, 72.7 G parameters", qwen_source, Takes::text},
    {"qwen3-0.6b", "Qwen3 0.6B, 596 M parameters", qwen3_source, Takes::text},
    {"qwen3-1.7b", "Qwen3 1.7B, 1.72 G parameters", qwen3_source, Takes::text},
    {"qwen3-4b", "Qwen3 4B, 4.02 G parameters", qwen3_source, Takes::text},
    {"qwen3-8b", "Qwen3 8B, 8.19 G parameters", qwen3_source, Takes::text},
    {"qwen3-14b", "Qwen3 14B, 14.8 G parameters", qwen3_source, Takes::text},
    {"qwen3-32b", "Qwen3 32B, 32.8 G parameters", qwen3_source, Takes::text},
    {"gemma-2b", "Gemma 2B, 2.51 G parameters", gemma_source, Takes::text},
    {"gemma-7b", "Gemma 7B, 8.54 G parameters", gemma_source, Takes::text},
    {"mixtral-8x7b", "Mixtral 8x7B, 46.7 G parameters, 12.9 G active", mixtral_source, Takes::text},
    {"mixtral-8x22b", "Mixtral 8x22B, 140.6 G parameters, 39.2 G active", mixtral_source,
     Takes::text},
};

std::vector<std::string_view> arguments_of(Takes takes) {
  switch (takes) {
    case Takes::perceptron: return {"in_features", "hidden_size", "num_classes"};
    case Takes::image: return {"image_size", "num_classes"};
    case Takes::image_and_dropout: return {"image_size", "num_classes", "dropout"};
    case Takes::image_and_depth: return {"image_size", "num_classes", "stochastic_depth"};
    case Takes::image_dropout_and_depth:
      return {"image_size", "num_classes", "dropout", "stochastic_depth"};
    case Takes::text: return {"seq_len", "vocab_size"};
    case Takes::two_texts: return {"seq_len", "target_len", "vocab_size", "dropout"};
    case Takes::text_and_dropout: return {"seq_len", "vocab_size", "dropout"};
  }
  return {};
}

}  // namespace

std::vector<NetworkPreset> network_presets() {
  std::vector<NetworkPreset> presets;
  for (const ListedPreset& preset : listed) {
    presets.push_back({preset.name, preset.summary, preset.source, arguments_of(preset.takes)});
  }
  return presets;
}

}  // namespace lockstep
