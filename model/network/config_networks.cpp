// Networks from configurations of Hugging Face (transformers' config.json). Defaults are those of
// its LlamaConfig, MistralConfig, MixtralConfig, Qwen2Config, Phi3Config, GPT2Config, OPTConfig,
// BertConfig, RobertaConfig and ViTConfig (those of config_kin.cpp: Qwen3Config, GemmaConfig,
// BartConfig, T5Config); sizes without which no network is meant must be there.
#include "model/network/config_networks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/network/bert.hpp"
#include "model/network/config_reader.hpp"

namespace lockstep {

LlamaShape llama_shape(ConfigReader& config) {
  LlamaShape shape;
  shape.layers = config.layers("num_hidden_layers");
  shape.heads = config.size("num_attention_heads");
  shape.width = config.size("hidden_size");
  shape.hidden = config.size("intermediate_size");
  shape.vocabulary = config.size("vocab_size");
  shape.key_heads = config.size("num_key_value_heads", std::max<int64_t>(1, shape.heads));
  const bool has_head_width = config.arguments().has("head_dim");
  shape.head_width = has_head_width ? config.size("head_dim") : 0;
  shape.positions = config.size("max_position_embeddings", 2048);
  shape.theta = config.arguments().number("rope_theta", 10000);
  shape.eps = config.arguments().number("rms_norm_eps", 1e-6);
  shape.is_tied = config.arguments().boolean("tie_word_embeddings", false);
  config.divides(shape.key_heads, shape.heads, "num_key_value_heads", "num_attention_heads");
  if (!has_head_width) {
    config.divides(shape.heads, shape.width, "num_attention_heads", "hidden_size");
  }
  return shape;
}

namespace {

NetworkDescription llama_kin(std::string_view name, ConfigReader& config, const LlamaShape& shape,
                             const ConfiguredSize& size) {
  config.word("hidden_act", "silu");
  return config.ok() ? describe_llama(name, shape, size.seq_len.value_or(shape.positions))
                     : NetworkDescription{};
}

NetworkDescription describe_llama_config(ConfigReader& config, const ConfiguredSize& size) {
  LlamaShape shape = llama_shape(config);
  shape.attention_bias = config.arguments().boolean("attention_bias", false);
  shape.feed_forward_bias = config.arguments().boolean("mlp_bias", false);
  return llama_kin("llama", config, shape, size);
}

NetworkDescription describe_mistral_config(ConfigReader& config, const ConfiguredSize& size) {
  LlamaShape shape = llama_shape(config);
  shape.window = config.arguments().has("sliding_window") ? config.size("sliding_window") : 0;
  shape.block_class = "MistralDecoderLayer";
  return llama_kin("mistral", config, shape, size);
}

NetworkDescription describe_qwen2_config(ConfigReader& config, const ConfiguredSize& size) {
  LlamaShape shape = llama_shape(config);
  config.truth("use_sliding_window", false);
  shape.qkv_bias = true;
  shape.block_class = "Qwen2DecoderLayer";
  return llama_kin("qwen2", config, shape, size);
}

// Its query, key and value are one product, as its gate and what it opens are; the sizes are those
// of the products apart.
NetworkDescription describe_phi3_config(ConfigReader& config, const ConfiguredSize& size) {
  LlamaShape shape = llama_shape(config);
  shape.window = config.arguments().has("sliding_window") ? config.size("sliding_window") : 0;
  shape.block_class = "Phi3DecoderLayer";
  for (const auto& [key, modelled] :
       {std::pair("partial_rotary_factor", 1.0), std::pair("resid_pdrop", 0.0),
        std::pair("embd_pdrop", 0.0), std::pair("attention_dropout", 0.0)}) {
    if (config.arguments().number(key, modelled) != modelled) {
      config.arguments().lack(fmt::format("`{}` other than {} is not modelled yet", key, modelled),
                              fmt::format("write {}", modelled));
    }
  }
  return llama_kin("phi3", config, shape, size);
}

NetworkDescription describe_mixtral_config(ConfigReader& config, const ConfiguredSize& size) {
  LlamaShape shape = llama_shape(config);
  shape.window = config.arguments().has("sliding_window") ? config.size("sliding_window") : 0;
  shape.block_class = "MixtralDecoderLayer";
  shape.experts = config.size("num_local_experts", 8);
  shape.top_k = config.size("num_experts_per_tok", 2);
  // The auxiliary loss is added where the model returns the router's outputs.
  const double coefficient = config.arguments().number("router_aux_loss_coef", 0.001);
  shape.aux_loss_coef = config.arguments().boolean("output_router_logits", false) ? coefficient : 0;
  if (config.arguments().number("router_jitter_noise", 0) != 0) {
    config.arguments().lack("`router_jitter_noise` is not modelled yet", "write 0");
  }
  if (config.ok() && shape.top_k > shape.experts) {
    config.arguments().complain(
        fmt::format("`num_experts_per_tok` {} is above `num_local_experts` {}", shape.top_k,
                    shape.experts),
        "choose num_experts_per_tok of at most num_local_experts");
  }
  return llama_kin("mixtral", config, shape, size);
}

NetworkDescription describe_gpt2_config(ConfigReader& config, const ConfiguredSize& size) {
  GptShape shape;
  shape.layers = config.layers("n_layer");
  shape.heads = config.size("n_head");
  shape.width = config.size("n_embd");
  shape.vocabulary = config.size("vocab_size");
  shape.positions = config.size("n_positions", 1024);
  shape.hidden = config.arguments().has("n_inner") ? config.size("n_inner") : 0;
  shape.eps = config.arguments().number("layer_norm_epsilon", 1e-5);
  shape.is_tied = config.arguments().boolean("tie_word_embeddings", true);
  config.word("activation_function", "gelu_new");
  config.divides(shape.heads, shape.width, "n_head", "n_embd");
  const double dropout = config.arguments().number("resid_pdrop", 0.1);
  for (const char* other : {"embd_pdrop", "attn_pdrop"}) {
    if (config.arguments().number(other, 0.1) != dropout && !size.dropout) {
      config.arguments().lack(
          fmt::format("`{}` and `resid_pdrop` differ, and are modelled as one", other),
          "write `dropout` beside `hf`: it stands for all three");
    }
  }
  return config.ok() ? describe_gpt("gpt2", shape, size.seq_len.value_or(shape.positions),
                                    size.dropout.value_or(dropout))
                     : NetworkDescription{};
}

NetworkDescription describe_opt_config(ConfigReader& config, const ConfiguredSize& size) {
  OptShape shape;
  shape.layers = config.layers("num_hidden_layers");
  shape.heads = config.size("num_attention_heads");
  shape.width = config.size("hidden_size");
  shape.hidden = config.size("ffn_dim");
  shape.vocabulary = config.size("vocab_size");
  shape.positions = config.size("max_position_embeddings", 2048);
  shape.is_tied = config.arguments().boolean("tie_word_embeddings", true);
  shape.attention_dropout = config.arguments().number("attention_dropout", 0);
  config.word("activation_function", "relu");
  config.truth("do_layer_norm_before", true);
  config.truth("enable_bias", true);
  config.truth("_remove_final_layer_norm", false);
  if (config.ok() && config.size("word_embed_proj_dim", shape.width) != shape.width) {
    config.arguments().lack("`word_embed_proj_dim` other than `hidden_size` is not modelled yet",
                            "write the hidden_size");
  }
  config.divides(shape.heads, shape.width, "num_attention_heads", "hidden_size");
  const double dropout = config.arguments().number("dropout", 0.1);
  return config.ok() ? describe_opt("opt", shape, size.seq_len.value_or(shape.positions),
                                    size.dropout.value_or(dropout))
                     : NetworkDescription{};
}

/// `unused`: rows of the embedding of positions that no position of a sequence has.
NetworkDescription describe_bert_kin(std::string_view name, ConfigReader& config,
                                     const ConfiguredSize& size, int64_t unused) {
  BertShape shape;
  shape.layers = config.layers("num_hidden_layers");
  shape.heads = config.size("num_attention_heads");
  shape.width = config.size("hidden_size");
  shape.hidden = config.size("intermediate_size");
  shape.vocabulary = config.size("vocab_size");
  shape.positions = config.size("max_position_embeddings", 512);
  shape.token_types = config.size("type_vocab_size", 2);
  shape.eps = config.arguments().number("layer_norm_eps", 1e-12);
  config.word("hidden_act", "gelu");
  config.word("position_embedding_type", "absolute");
  config.divides(shape.heads, shape.width, "num_attention_heads", "hidden_size");
  const double dropout = config.arguments().number("hidden_dropout_prob", 0.1);
  if (config.arguments().number("attention_probs_dropout_prob", 0.1) != dropout && !size.dropout) {
    config.arguments().lack(
        "`attention_probs_dropout_prob` and `hidden_dropout_prob` differ, and are modelled as one",
        "write `dropout` beside `hf`: it stands for both");
  }
  const int64_t seq_len = size.seq_len.value_or(shape.positions - unused);
  shape.positions = std::max(shape.positions, seq_len + unused);
  if (config.ok() && seq_len < 1) {
    config.arguments().complain(fmt::format("`max_position_embeddings` is {}", shape.positions),
                                fmt::format("{} of them belong to padding: write more", unused));
  }
  return config.ok() ? describe_bert(name, shape, seq_len, size.dropout.value_or(dropout))
                     : NetworkDescription{};
}

NetworkDescription describe_bert_config(ConfigReader& config, const ConfiguredSize& size) {
  return describe_bert_kin("bert", config, size, 0);
}

// Positions count from behind that of the padding token.
NetworkDescription describe_roberta_config(ConfigReader& config, const ConfiguredSize& size) {
  const int64_t padding = config.arguments().integer("pad_token_id", int64_t{1});
  return describe_bert_kin("roberta", config, size, padding + 1);
}

NetworkDescription describe_vit_config(ConfigReader& config, const ConfiguredSize& size) {
  VitShape shape;
  shape.layers = config.layers("num_hidden_layers");
  shape.heads = config.size("num_attention_heads");
  shape.width = config.size("hidden_size");
  shape.hidden = config.size("intermediate_size");
  shape.image = config.size("image_size", 224);
  shape.patch = config.size("patch_size", 16);
  shape.channels = config.size("num_channels", 3);
  shape.eps = config.arguments().number("layer_norm_eps", 1e-12);
  const int64_t labels = config.size("id2label", config.size("num_labels", 2));
  shape.classes = size.num_classes.value_or(labels);
  config.word("hidden_act", "gelu");
  config.truth("qkv_bias", true);
  config.divides(shape.heads, shape.width, "num_attention_heads", "hidden_size");
  if (config.ok() && shape.image < shape.patch) {
    config.arguments().complain(
        fmt::format("patches of {} do not fit into images of {}", shape.patch, shape.image),
        "choose patch_size of at most image_size");
  }
  const double dropout = config.arguments().number("hidden_dropout_prob", 0);
  config.arguments().number("attention_probs_dropout_prob", 0);
  return config.ok() ? describe_vit("vit", shape, size.dropout.value_or(dropout))
                     : NetworkDescription{};
}

struct ConfigFamily {
  std::string_view name;
  NetworkDescription (*describe)(ConfigReader&, const ConfiguredSize&);
  bool has_positions;  ///< takes `seq_len`
};
constexpr ConfigFamily families[] = {
    {"llama", describe_llama_config, true},     {"mistral", describe_mistral_config, true},
    {"mixtral", describe_mixtral_config, true}, {"qwen2", describe_qwen2_config, true},
    {"phi3", describe_phi3_config, true},       {"gpt2", describe_gpt2_config, true},
    {"opt", describe_opt_config, true},         {"bert", describe_bert_config, true},
    {"roberta", describe_roberta_config, true}, {"vit", describe_vit_config, false},
    {"qwen3", describe_qwen3_config, true},     {"gemma", describe_gemma_config, true},
    {"t5", describe_t5_config, true},           {"bart", describe_bart_config, true}};

/// Of other models that transformers has, those whose configurations people are likely to name.
constexpr std::array<std::string_view, 9> other_families = {"gptj",   "gpt_neo",     "gpt_neox",
                                                            "gemma2", "gemma3",      "bloom",
                                                            "falcon", "deepseek_v3", "qwen2_moe"};

std::string family_names() {
  std::string names;
  for (const ConfigFamily& family : families) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family.name);
  }
  return names;
}

NetworkError unknown_family(const std::string& family) {
  NetworkError error{.path = "hf", .remedy = "model_type can be " + family_names()};
  error.is_unmodelled = std::ranges::count(other_families, family) > 0;
  error.message = family.empty() ? "config.json has no `model_type`"
                  : error.is_unmodelled
                      ? fmt::format("the model_type `{}` is not modelled yet", family)
                      : fmt::format("there is no model_type `{}`", family);
  return error;
}

bool is_there(const std::vector<NamedArgument>& config, std::string_view key) {
  return std::ranges::find(config, key, &NamedArgument::name) != config.end();
}

}  // namespace

std::variant<ConfiguredNetwork, NetworkError> describe_config(
    const std::vector<NamedArgument>& config, const ConfiguredSize& size) {
  const LayerDescription keys{.kind = "config.json", .arguments = config};
  ConfigReader reader(keys);
  const std::string name = reader.arguments().text("model_type", "");
  const auto* family = std::ranges::find(families, name, &ConfigFamily::name);
  if (family == std::end(families)) {
    return unknown_family(name);
  }
  if (size.seq_len && !family->has_positions) {
    return NetworkError{.path = "hf",
                        .message = fmt::format("a model of model_type `{}` has no seq_len", name),
                        .remedy = "remove `seq_len`"};
  }
  if (size.target_len && name != "t5" && name != "bart") {
    return NetworkError{.path = "hf",
                        .message = fmt::format("a model of model_type `{}` has no decoder of its "
                                               "own, and so no target_len",
                                               name),
                        .remedy = "remove `target_len`"};
  }
  ConfiguredNetwork network{.description = family->describe(reader, size)};
  if (!reader.ok()) {
    NetworkError error = reader.arguments().errors().front();
    error.path = "hf";
    return error;
  }
  if (is_there(config, "rope_scaling")) {
    network.notes.emplace_back(
        "`rope_scaling` of config.json is not modelled: it changes values, not time or memory");
  }
  return network;
}

}  // namespace lockstep
