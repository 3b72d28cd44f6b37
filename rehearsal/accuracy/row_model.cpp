#include "rehearsal/accuracy/row_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "model/network/presets.hpp"

namespace lockstep::cli {

namespace {

/// Dimensions of a transformer.
struct TransformerShape {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t ffn = 0;
  int64_t vocabulary = 0;
  int64_t seq_len = 0;
};

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

/// Networks that other spellings of the row name: a preset, if there is one.
struct NamedNetwork {
  std::string_view name;
  std::string_view preset;
  std::string_view family;
};
constexpr NamedNetwork networks[] = {{"resnet-50", "resnet50", "ResNet"},
                                     {"resnet50", "resnet50", "ResNet"},
                                     {"resnet18", "resnet18", "ResNet"},
                                     {"resnet-101", "resnet101", "ResNet"},
                                     {"resnet101", "resnet101", "ResNet"},
                                     {"resnet152", "resnet152", "ResNet"},
                                     {"vgg16", "vgg16", "VGG"},
                                     {"vgg-16", "vgg16", "VGG"},
                                     {"vit_base_patch16_224", "vit-b-16", "ViT"}};

/// Why other networks cannot be written.
struct Inexpressible {
  std::string_view name;
  std::string_view family;
  std::string_view why;
};
constexpr Inexpressible inexpressible[] = {
    {"gnmt", "GNMT", "LSTM layers are not modelled"},
    {"ssd", "SSD", "SSD300's detection heads and loss over several feature maps are not layers"},
    {"transformerxl", "Transformer-XL", "attention over the memory of earlier segments"},
    {"transformer-xl", "Transformer-XL", "attention over the memory of earlier segments"},
    {"moe", "MoE", "mixtures of experts are not modelled"},
    {"inception", "Inception", "branches that are concatenated are not layers"},
    {"yolo", "YOLO", "branches that are concatenated are not layers"},
    {"u-net", "U-Net", "branches that are concatenated are not layers"},
    {"amoebanet", "AmoebaNet", "branches that are concatenated are not layers"},
    {"t5-", "T5", "encoder and decoder with cross-attention are not layers"},
    {"t5 3b", "T5", "encoder and decoder with cross-attention are not layers"},
    {"llama", "Llama", "gated MLPs and grouped attention are not layers yet"},
    {"internlm", "Llama", "gated MLPs and grouped attention are not layers yet"},
    {"lora", "LoRA", "adapters beside frozen weights are not layers"}};

TransformerShape with_row(TransformerShape shape, const ThroughputRow& row) {
  const auto take = [&row](int64_t& value, std::string_view column) {
    value = row.whole(column).value_or(value);
  };
  take(shape.layers, "layers");
  take(shape.hidden, "hidden");
  take(shape.heads, "heads");
  take(shape.ffn, "ffn");
  take(shape.vocabulary, "vocab");
  take(shape.seq_len, "seq_len");
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

std::string attention_of(const ThroughputRow& row) {
  const std::string framework = lower_case(row.text("framework"));
  const bool is_flash = contains(framework, "foundry") || contains(framework, "fsdp + compile") ||
                        contains(framework, "nightly") || contains(framework, "torch.compile") ||
                        contains(framework, "core") || contains(framework, "flash") ||
                        contains(framework, "bridge") || contains(framework, "nanotron");
  return is_flash ? "flash" : "math";
}

std::string checkpointing_line(const ThroughputRow& row) {
  const std::string text = lower_case(row.text("activation_checkpointing"));
  if (contains(text, "full") || contains(text, "gpipe") || contains(text, "every")) {
    return "  activation_checkpointing: full\n";
  }
  return contains(text, "selective") ? "  activation_checkpointing: selective\n" : "";
}

/// Pre-training predicts the masked positions alone: so many of a sequence (google-research/bert,
/// create_pretraining_data.py: max_predictions_per_seq 20 of 128 and 80 of 512).
int64_t masked_positions(int64_t seq_len) { return std::max<int64_t>(1, seq_len * 20 / 128); }

/// The encoder of BERT. The head over the vocabulary computes masked positions alone, which no
/// layer selects: a head over all positions with as many FLOPs stands for it.
std::string encoder_yaml(const ThroughputRow& row, const TransformerShape& shape, bool is_squad) {
  const int64_t classes =
      is_squad ? 2 : shape.vocabulary * masked_positions(shape.seq_len) / shape.seq_len;
  return fmt::format(
      "model:\n  attention: {}\n{}  input: [{}]\n  layers:\n"
      "    - {{Embedding: [{}, {}]}}\n    - {{PositionalEmbedding: [{}, {}]}}\n"
      "    - {{LayerNorm: {}}}\n    - {{Dropout: {{p: 0.1}}}}\n"
      "    - {{repeat: {}, layers: [{{TransformerEncoderLayer: {{d_model: {}, nhead: {}, "
      "dim_feedforward: {}, activation: gelu}}}}]}}\n"
      "    - {{Linear: [{}, {}]}}\n",
      attention_of(row), checkpointing_line(row), shape.seq_len, shape.vocabulary, shape.hidden,
      std::max<int64_t>(512, shape.seq_len) + 2, shape.hidden, shape.hidden, shape.layers,
      shape.hidden, shape.heads, shape.ffn, shape.hidden, classes);
}

std::string decoder_yaml(const ThroughputRow& row, const TransformerShape& shape) {
  const std::string source = row.source;
  const bool has_dropout = source.starts_with("dlperf") || contains(source, "misc") ||
                           source.starts_with("megatron") || source.starts_with("libai");
  const double dropout = has_dropout ? 0.1 : 0.0;
  const int64_t h = shape.hidden;
  return fmt::format(
      "model:\n  attention: {}\n{}  input: [{}]\n  layers:\n"
      "    - {{Embedding: [{}, {}], name: wte}}\n    - {{PositionalEmbedding: [{}, {}]}}\n"
      "    - {{Dropout: {{p: {}}}}}\n"
      "    - repeat: {}\n      layers:\n"
      "        - {{Residual: {{layers: [{{LayerNorm: {}}}, {{CausalSelfAttention: {{embed_dim: {}, "
      "num_heads: {}, dropout: {}}}}}, {{Dropout: {{p: {}}}}}]}}}}\n"
      "        - {{Residual: {{layers: [{{LayerNorm: {}}}, {{Linear: [{}, {}]}}, {{GELU: "
      "{{approximate: tanh}}}}, {{Linear: [{}, {}]}}, {{Dropout: {{p: {}}}}}]}}}}\n"
      "    - {{LayerNorm: {}}}\n"
      "    - {{Linear: {{in_features: {}, out_features: {}, bias: false, tied_to: wte}}}}\n",
      attention_of(row), checkpointing_line(row), shape.seq_len, shape.vocabulary, h, shape.seq_len,
      h, dropout, shape.layers, h, h, shape.heads, dropout, dropout, h, h, shape.ffn, shape.ffn, h,
      dropout, h, h, shape.vocabulary);
}

/// Xie et al. 2017: ResNet-50's blocks with 32 groups of 4 channels, twice as wide inside.
std::string resnext_yaml() {
  constexpr std::array<int64_t, 4> blocks{3, 4, 6, 3};
  const auto conv = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups) {
    return fmt::format(
        "{{Conv2d: {{in_channels: {}, out_channels: {}, kernel_size: {}, stride: {}, padding: {}, "
        "groups: {}, bias: false}}}}, {{BatchNorm2d: {}}}",
        in, out, kernel, stride, kernel / 2, groups, out);
  };
  std::string yaml = fmt::format(
      "model:\n  input: [3, 224, 224]\n  layers:\n    - Sequential: {{layers: [{}, ReLU]}}\n"
      "    - {{MaxPool2d: {{kernel_size: 3, stride: 2, padding: 1}}}}\n",
      conv(3, 64, 7, 2, 1));
  int64_t in = 64;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{128} << stage;
    for (int64_t block = 0; block < blocks[static_cast<size_t>(stage)]; ++block) {
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      const std::string shortcut =
          block == 0 ? fmt::format(", shortcut: [{}]", conv(in, 2 * width, 1, stride, 1)) : "";
      yaml += fmt::format("    - Residual: {{layers: [{}, ReLU, {}, ReLU, {}]{}}}\n    - ReLU\n",
                          conv(in, width, 1, 1, 1), conv(width, width, 3, stride, 32),
                          conv(width, 2 * width, 1, 1, 1), shortcut);
      in = 2 * width;
    }
  }
  return yaml + "    - {AdaptiveAvgPool2d: 1}\n    - Flatten\n    - {Linear: [2048, 1000]}\n";
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

RowModel transformer_of(const ThroughputRow& row, const std::string& name) {
  const bool is_encoder = contains(name, "bert");
  RowModel model{.family = is_encoder ? "BERT" : "GPT"};
  const NamedTransformer* known = is_encoder ? named_in(encoders, name) : named_in(decoders, name);
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
  if (model.why_not.empty() && shape.hidden % shape.heads != 0) {
    model.why_not = "heads do not divide the hidden size";
  }
  if (model.why_not.empty()) {
    model.yaml = is_encoder ? encoder_yaml(row, shape, is_squad) : decoder_yaml(row, shape);
  }
  return model;
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

RowModel model_of(const ThroughputRow& row) {
  const std::string name = lower_case(row.text("model"));
  for (const Inexpressible& each : inexpressible) {
    if (contains(name, each.name)) {
      return {.family = std::string(each.family), .why_not = std::string(each.why)};
    }
  }
  if (contains(name, "resnext50_32x4d")) {
    return {.family = "ResNeXt", .yaml = resnext_yaml(), .is_image = true};
  }
  for (const NamedNetwork& each : networks) {
    if (name != each.name && !name.starts_with(fmt::format("{} ", each.name))) {
      continue;
    }
    RowModel model{.family = std::string(each.family), .is_image = true};
    if (is_preset(each.preset)) {
      model.yaml = fmt::format("model: {{preset: {}}}\n", each.preset);
    } else {
      model.why_not = fmt::format("there is no model preset {}", each.preset);
    }
    return model;
  }
  if (contains(name, "bert") || contains(name, "gpt") || contains(name, "mpt") ||
      contains(name, "megatron-22b")) {
    return transformer_of(row, name);
  }
  return {.family = "other", .why_not = "the network is not one that layers or presets describe"};
}

}  // namespace lockstep::cli
