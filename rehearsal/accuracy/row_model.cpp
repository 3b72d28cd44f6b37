#include "rehearsal/accuracy/row_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include "model/network/presets.hpp"
#include "rehearsal/accuracy/row_networks.hpp"

namespace lockstep::cli {

namespace {

struct NamedTransformer {
  std::string_view name;  ///< a part of the name in the row
  TransformerShape shape;
};

// Devlin et al. 2019; Sanh et al. 2019; Radford et al. 2019 (sizes of the published checkpoints).
constexpr NamedTransformer encoders[] = {
    {"distilbert", {6, 768, 12, 3072, 30522}},   {"bert-base", {12, 768, 12, 3072, 30522}},
    {"bert_base", {12, 768, 12, 3072, 30522}},   {"bert 110m", {12, 768, 12, 3072, 30522}},
    {"bert-large", {24, 1024, 16, 4096, 30522}}, {"bert_large", {24, 1024, 16, 4096, 30522}}};
constexpr NamedTransformer decoders[] = {{"gpt2-medium", {24, 1024, 16, 4096, 50257}},
                                         {"gpt2-large", {36, 1280, 20, 5120, 50257}},
                                         {"gpt2 (124m)", {12, 768, 12, 3072, 50257, 1024}}};
// Touvron et al. 2023, Roziere et al. 2023 (34B), Grattafiori et al. 2024, Zhang et al. 2024
// (TinyLlama), InternLM-7B: config.json of the published checkpoints.
constexpr NamedTransformer gated_decoders[] = {
    {"tinyllama-1.1b", {22, 2048, 32, 5632, 32000, 2048, 4}},
    {"internlm-7b", {32, 4096, 32, 11008, 103168}},
    {"llama-2-7b", {32, 4096, 32, 11008, 32000}},
    {"llama-2-13b", {40, 5120, 40, 13824, 32000}},
    {"llama-2-34b", {48, 8192, 64, 22016, 32000, 0, 8}},
    {"llama-2-70b", {80, 8192, 64, 28672, 32000, 0, 8}},
    {"llama-3.1-8b", {32, 4096, 32, 14336, 128256, 0, 8}},
    {"llama-3.1-70b", {80, 8192, 64, 28672, 128256, 0, 8}},
    {"llama-3.1-405b", {126, 16384, 128, 53248, 128256, 0, 8}},
    {"llama-1b (bench_cluster)", {24, 2048, 32, 4096, 50257}}};

/// Networks that other spellings of the row name: a preset, if there is one.
struct NamedNetwork {
  std::string_view name;
  std::string_view preset;
  std::string_view family;
  int64_t image_size = 0;  ///< 0: the preset's
};
constexpr NamedNetwork networks[] = {{"resnet-50", "resnet50", "ResNet"},
                                     {"resnet50", "resnet50", "ResNet"},
                                     {"resnet18", "resnet18", "ResNet"},
                                     {"resnet-101", "resnet101", "ResNet"},
                                     {"resnet101", "resnet101", "ResNet"},
                                     {"resnet152", "resnet152", "ResNet"},
                                     {"resnext50_32x4d", "resnext50-32x4d", "ResNeXt"},
                                     {"densenet201", "densenet201", "DenseNet"},
                                     {"vgg16", "vgg16", "VGG"},
                                     {"vgg-16", "vgg16", "VGG"},
                                     {"vit_base_patch16_224", "vit-b-16", "ViT"},
                                     {"deit_base_patch16_224", "vit-b-16", "ViT"},
                                     {"efficientnet_b3", "efficientnet-b3", "EfficientNet", 288},
                                     {"convnext_large", "convnext-large", "ConvNeXt"},
                                     {"swin_base_patch4_window7_224", "swin-base", "Swin"}};

/// Networks of images that are written as layers.
struct WrittenNetwork {
  std::string_view name;
  std::string_view family;
  std::string (*yaml)();
};
std::string tiny_vision_transformer() { return vision_transformer_yaml({12, 192, 3, 768}); }
constexpr WrittenNetwork written_networks[] = {
    {"mobilenetv2_100", "MobileNet", mobilenet_yaml},
    {"vit_tiny_patch16_224", "ViT", tiny_vision_transformer},
    {"regnety_032", "RegNet", regnet_yaml},
    {"ssd", "SSD", ssd_yaml}};

/// Why other networks cannot be written.
struct Inexpressible {
  std::string_view name;
  std::string_view family;
  std::string_view why;
};
constexpr Inexpressible inexpressible[] = {
    {"gnmt", "GNMT", "attention of an LSTM over another one; lengths of sentences are not stated"},
    {"moe", "MoE", "mixtures of experts are not translated"},
    {"inception", "Inception", "several branches that are concatenated"},
    {"yolo", "YOLO", "several branches that are concatenated"},
    {"u-net", "U-Net", "the size of images and the batch are not stated"},
    {"amoebanet", "AmoebaNet", "several branches that are concatenated"},
    {"beit", "BEiT", "attention with a bias by relative position"},
    {"t5-", "T5", "lengths of source and target are not stated"},
    {"t5 3b", "T5", "how the model is divided over the GPUs is not stated"},
    {"lora", "LoRA", "adapters beside frozen weights are not layers"}};

// wt103_base.yaml and wt103_large.yaml of NVIDIA/DeepLearningExamples, Transformer-XL: positions of
// a segment are those of the memory. WikiText-103 has 267735 words; the adaptive softmax computes
// 19997 words and three clusters for every position. The large network has embeddings of 1024, 256,
// 64 and 16 numbers by cluster (of 19997, 20000, 160000 and 67738 words): as many parameters as
// 36054 words of 1024.
constexpr TransformerShape memory_base{16, 512, 8, 2048, 267735, 192};
constexpr TransformerShape memory_large{18, 1024, 16, 4096, 36054, 384};
constexpr int64_t frequent_words = 20000;

/// "~250k" is 250000.
int64_t vocabulary_of(const ThroughputRow& row, int64_t otherwise) {
  if (const auto stated = row.whole("vocab")) {
    return *stated;
  }
  static const std::regex thousands(R"(^~(\d+)k$)");
  std::smatch match;
  const std::string& text = row.text("vocab");
  return std::regex_search(text, match, thousands) ? 1000 * std::stol(match[1]) : otherwise;
}

TransformerShape with_row(TransformerShape shape, const ThroughputRow& row) {
  const auto take = [&row](int64_t& value, std::string_view column) {
    value = row.whole(column).value_or(value);
  };
  take(shape.layers, "layers");
  take(shape.hidden, "hidden");
  take(shape.heads, "heads");
  take(shape.ffn, "ffn");
  take(shape.key_heads, "kv_heads");
  take(shape.seq_len, "seq_len");
  shape.vocabulary = vocabulary_of(row, shape.vocabulary);
  shape.ffn = shape.ffn == 0 ? 4 * shape.hidden : shape.ffn;
  return shape;
}

std::string lacking(const TransformerShape& shape) {
  if (shape.seq_len == 0) {
    return "the sequence length is not stated";
  }
  return shape.layers == 0 || shape.hidden == 0 || shape.heads == 0
             ? "layers, hidden size or heads are not stated"
             : "";
}

std::string_view attention_of(const ThroughputRow& row) {
  const std::string framework = lower_case(row.text("framework"));
  // llm.c has cuDNN's kernel in its scripts (USE_CUDNN=1), which takes 16 bits alone.
  const bool is_of_cudnn =
      contains(framework, "llm.c") && contains(lower_case(row.text("precision")), "bf16");
  const bool is_flash = is_of_cudnn || contains(framework, "tinyllama") ||
                        contains(framework, "foundry") || contains(framework, "fsdp + compile") ||
                        contains(framework, "nightly") || contains(framework, "torch.compile") ||
                        contains(framework, "core") || contains(framework, "flash") ||
                        contains(framework, "bridge") || contains(framework, "nanotron") ||
                        contains(framework, "torchtitan");
  return is_flash ? "flash" : "math";
}

std::string checkpointing_of(const ThroughputRow& row) {
  const std::string text = lower_case(row.text("activation_checkpointing"));
  if (contains(text, "full") || contains(text, "gpipe") || contains(text, "every")) {
    return "full";
  }
  return contains(text, "selective") ? "selective" : "";
}

TransformerForm form_of(const ThroughputRow& row, int64_t tensor_ranks) {
  const std::string& source = row.source;
  const bool has_dropout = source.starts_with("dlperf") || contains(source, "misc") ||
                           source.starts_with("megatron") || source.starts_with("libai") ||
                           source.starts_with("korthikanti") || source == "bigscience_v100";
  return {.attention = attention_of(row),
          .checkpointing = checkpointing_of(row),
          .dropout = has_dropout ? 0.1 : 0.0,
          .tensor = tensor_ranks};
}

template <size_t count>
const NamedTransformer* named_in(const NamedTransformer (&list)[count], const std::string& name) {
  const auto* const found = std::ranges::find_if(
      list, [&](const NamedTransformer& each) { return contains(name, each.name); });
  return found == std::end(list) ? nullptr : found;
}

bool is_preset(std::string_view name) {
  const std::vector<NetworkPreset> presets = network_presets();
  return std::ranges::find(presets, name, &NetworkPreset::name) != presets.end();
}

/// 24 s l h^2 (1 + s / (6 h) + V / (16 l h)) for a forward; a backward is two of them.
double flops_of_gpt(const TransformerShape& shape, bool runs_again) {
  const auto s = static_cast<double>(shape.seq_len);
  const auto l = static_cast<double>(shape.layers);
  const auto h = static_cast<double>(shape.hidden);
  const auto v = static_cast<double>(shape.vocabulary);
  return (runs_again ? 96 : 72) * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

enum class Kind : uint8_t { encoder, decoder, gated };

RowModel transformer_of(const ThroughputRow& row, const std::string& name, Kind kind,
                        int64_t tensor_ranks) {
  constexpr std::array<const char*, 3> families{"BERT", "GPT", "Llama"};
  RowModel model{.family = families[static_cast<size_t>(kind)]};
  const bool is_encoder = kind == Kind::encoder;
  const NamedTransformer* known = is_encoder              ? named_in(encoders, name)
                                  : kind == Kind::decoder ? named_in(decoders, name)
                                                          : named_in(gated_decoders, name);
  TransformerShape shape = with_row(known == nullptr ? TransformerShape{} : known->shape, row);
  const bool is_squad = contains(name, "squad") ||
                        contains(lower_case(row.text("notes")), "squad") ||
                        contains(lower_case(row.text("framework")), "squad");
  if (is_squad && shape.seq_len == 0) {
    shape.seq_len = 384;  // run_squad.py of NVIDIA/DeepLearningExamples: --max_seq_length
  }
  if (shape.vocabulary == 0) {
    shape.vocabulary = is_encoder ? 30522 : 51200;
  }
  model.seq_len = std::max<int64_t>(1, shape.seq_len);
  model.why_not = lacking(shape);
  if (model.why_not.empty() && contains(row.text("seq_len"), "packed")) {
    model.why_not = "sequences are packed, and their lengths are not stated";
  }
  if (model.why_not.empty() && shape.hidden % shape.heads != 0) {
    model.why_not = "heads do not divide the hidden size";
  }
  if (!model.why_not.empty()) {
    return model;
  }
  model.layers = shape.layers;
  const TransformerForm form = form_of(row, tensor_ranks);
  model.yaml = is_encoder              ? encoder_yaml(shape, form, is_squad)
               : kind == Kind::decoder ? decoder_yaml(shape, form)
                                       : gated_yaml(shape, form);
  if (kind == Kind::decoder) {
    model.published_flops = flops_of_gpt(shape, form.checkpointing == "full");
  }
  return model;
}

/// A row that states the vocabulary has all of it in embedding and softmax.
RowModel with_memory(const ThroughputRow& row, const std::string& name) {
  const bool is_large = contains(name, "large");
  const TransformerShape shape = with_row(is_large ? memory_large : memory_base, row);
  const bool has_all_words = row.whole("vocab").has_value();
  return {.family = "Transformer-XL",
          .yaml = memory_yaml(shape, {.dropout = is_large ? 0.2 : 0.1},
                              has_all_words ? shape.vocabulary : frequent_words),
          .seq_len = shape.seq_len,
          .layers = shape.layers};
}

RowModel image_network_of(const std::string& name) {
  for (const WrittenNetwork& each : written_networks) {
    if (name == each.name) {
      return {.family = std::string(each.family), .yaml = each.yaml(), .is_image = true};
    }
  }
  for (const NamedNetwork& each : networks) {
    if (name != each.name && !name.starts_with(fmt::format("{} ", each.name))) {
      continue;
    }
    RowModel model{.family = std::string(each.family), .is_image = true};
    if (is_preset(each.preset)) {
      const std::string size =
          each.image_size > 0 ? fmt::format(", image_size: {}", each.image_size) : "";
      model.yaml = fmt::format("model: {{preset: {}{}}}\n", each.preset, size);
    } else {
      model.why_not = fmt::format("there is no model preset {}", each.preset);
    }
    return model;
  }
  return {.family = "other", .why_not = "the network is not one that layers or presets describe"};
}

}  // namespace

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return text;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

RowModel model_of(const ThroughputRow& row, int64_t tensor_ranks) {
  const std::string name = lower_case(row.text("model"));
  for (const Inexpressible& each : inexpressible) {
    if (contains(name, each.name)) {
      return {.family = std::string(each.family), .why_not = std::string(each.why)};
    }
  }
  if (contains(name, "transformerxl") || contains(name, "transformer-xl")) {
    return with_memory(row, name);
  }
  if (contains(name, "llama") || contains(name, "internlm")) {
    return transformer_of(row, name, Kind::gated, tensor_ranks);
  }
  if (contains(name, "bert")) {
    return transformer_of(row, name, Kind::encoder, tensor_ranks);
  }
  if (contains(name, "gpt") || contains(name, "mpt") || contains(name, "megatron-22b")) {
    return transformer_of(row, name, Kind::decoder, tensor_ranks);
  }
  return image_network_of(name);
}

}  // namespace lockstep::cli
