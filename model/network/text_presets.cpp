// Published networks of text: GPT-2, GPT-3, Megatron's table, Llama and its kin, Mixtral.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/network/published.hpp"

namespace lockstep {

namespace {

struct NamedGpt {
  std::string_view name;
  GptShape shape;
};

// GPT-2: sizes of the published checkpoints. GPT-3: Brown et al. 2020, table 2.1, of the same
// structure; every layer's attention is dense here. Megatron: Narayanan et al. 2021, table 1.
constexpr int64_t megatron_vocabulary = 51200;
constexpr NamedGpt gpts[] = {
    {"gpt2", {12, 12, 768}},
    {"gpt2-medium", {24, 16, 1024}},
    {"gpt2-large", {36, 20, 1280}},
    {"gpt2-xl", {48, 25, 1600}},
    {"gpt3-6.7b", {32, 32, 4096, 2048}},
    {"gpt3-13b", {40, 40, 5120, 2048}},
    {"gpt3-175b", {96, 96, 12288, 2048}},
    {"megatron-1.7b", {24, 24, 2304, 2048, megatron_vocabulary}},
    {"megatron-3.6b", {30, 32, 3072, 2048, megatron_vocabulary}},
    {"megatron-7.5b", {36, 32, 4096, 2048, megatron_vocabulary}},
    {"megatron-18.4b", {40, 48, 6144, 2048, megatron_vocabulary}},
    {"megatron-39.1b", {48, 64, 8192, 2048, megatron_vocabulary}},
    {"megatron-76.1b", {60, 80, 10240, 2048, megatron_vocabulary}},
    {"megatron-145.6b", {80, 96, 12288, 2048, megatron_vocabulary}},
    {"megatron-310.1b", {96, 128, 16384, 2048, megatron_vocabulary}},
    {"megatron-529.6b", {105, 128, 20480, 2048, megatron_vocabulary}},
    {"megatron-1t", {128, 160, 25600, 2048, megatron_vocabulary}},
};

struct NamedLlama {
  std::string_view name;
  LlamaShape shape;
};

/// The base models of Qwen2.5 (Qwen Team 2024); the default sequence is that of their pre-training.
constexpr LlamaShape qwen2(LlamaShape shape, bool is_tied) {
  shape.positions = 4096;
  shape.theta = 1e6;
  shape.eps = 1e-6;
  shape.is_tied = is_tied;
  shape.qkv_bias = true;
  shape.block_class = "Qwen2DecoderLayer";
  return shape;
}

/// The base models of Qwen3 (Qwen Team 2025), whose heads are 128 wide; pre-trained on sequences of
/// 4096 first.
constexpr LlamaShape qwen3(LlamaShape shape, bool is_tied) {
  shape.vocabulary = 151936;
  shape.positions = 4096;
  shape.theta = 1e6;
  shape.eps = 1e-6;
  shape.head_width = 128;
  shape.is_tied = is_tied;
  shape.qk_norm = true;
  shape.block_class = "Qwen3DecoderLayer";
  return shape;
}

/// Gemma (Gemma Team 2024), whose heads are 256 wide.
constexpr LlamaShape gemma(LlamaShape shape) {
  shape.vocabulary = 256000;
  shape.positions = 8192;
  shape.eps = 1e-6;
  shape.head_width = 256;
  shape.is_tied = true;
  shape.gelu = true;
  shape.scales_embedding = true;
  shape.block_class = "GemmaDecoderLayer";
  return shape;
}

// Touvron et al. 2023 and the config.json of each checkpoint. Llama 3.2 was trained on sequences of
// 8192 before it was extended to 131072.
constexpr NamedLlama llamas[] = {
    {"llama2-7b", {32, 32, 32, 4096, 11008}},
    {"llama2-13b", {40, 40, 40, 5120, 13824}},
    {"llama2-70b", {80, 64, 8, 8192, 28672}},
    {"llama3-8b", {32, 32, 8, 4096, 14336, 128256, 8192, 500000}},
    {"llama3-70b", {80, 64, 8, 8192, 28672, 128256, 8192, 500000}},
    {"llama3-405b", {126, 128, 8, 16384, 53248, 128256, 8192, 500000}},
    {"llama3.2-1b", {16, 32, 8, 2048, 8192, 128256, 8192, 500000, 0, 64, 1e-5, true}},
    {"llama3.2-3b", {28, 24, 8, 3072, 8192, 128256, 8192, 500000, 0, 128, 1e-5, true}},
    {"tinyllama-1.1b", {22, 32, 4, 2048, 5632, 32000, 2048}},
    {"phi3-mini",
     {.layers = 32,
      .heads = 32,
      .key_heads = 32,
      .width = 3072,
      .hidden = 8192,
      .vocabulary = 32064,
      .block_class = "Phi3DecoderLayer"}},
    {"qwen2.5-0.5b", qwen2({24, 14, 2, 896, 4864, 151936}, true)},
    {"qwen2.5-1.5b", qwen2({28, 12, 2, 1536, 8960, 151936}, true)},
    {"qwen2.5-3b", qwen2({36, 16, 2, 2048, 11008, 151936}, true)},
    {"qwen2.5-7b", qwen2({28, 28, 4, 3584, 18944, 152064}, false)},
    {"qwen2.5-14b", qwen2({48, 40, 8, 5120, 13824, 152064}, false)},
    {"qwen2.5-32b", qwen2({64, 40, 8, 5120, 27648, 152064}, false)},
    {"qwen2.5-72b", qwen2({80, 64, 8, 8192, 29568, 152064}, false)},
    {"qwen3-0.6b", qwen3({28, 16, 8, 1024, 3072}, true)},
    {"qwen3-1.7b", qwen3({28, 16, 8, 2048, 6144}, true)},
    {"qwen3-4b", qwen3({36, 32, 8, 2560, 9728}, true)},
    {"qwen3-8b", qwen3({36, 32, 8, 4096, 12288}, false)},
    {"qwen3-14b", qwen3({40, 40, 8, 5120, 17408}, false)},
    {"qwen3-32b", qwen3({64, 64, 8, 5120, 25600}, false)},
    {"gemma-2b", gemma({18, 8, 1, 2048, 16384})},
    {"gemma-7b", gemma({28, 16, 16, 3072, 24576})},
    {"mistral-7b",
     {.layers = 32,
      .heads = 32,
      .key_heads = 8,
      .width = 4096,
      .hidden = 14336,
      .positions = 8192,
      .window = 4096,
      .block_class = "MistralDecoderLayer"}},
    {"mixtral-8x7b",
     {.layers = 32,
      .heads = 32,
      .key_heads = 8,
      .width = 4096,
      .hidden = 14336,
      .positions = 32768,
      .theta = 1e6,
      .block_class = "MixtralDecoderLayer",
      .experts = 8,
      .top_k = 2}},
    {"mixtral-8x22b",
     {.layers = 56,
      .heads = 48,
      .key_heads = 8,
      .width = 6144,
      .hidden = 16384,
      .positions = 65536,
      .theta = 1e6,
      .block_class = "MixtralDecoderLayer",
      .experts = 8,
      .top_k = 2}},
};

void add_gpt_block(const GptShape& shape, const std::string& name, double dropout, Layers& layers) {
  const int64_t width = shape.width;
  const int64_t hidden = shape.hidden > 0 ? shape.hidden : 4 * width;
  LayerDescription attention = residual(
      "", {named_layer("LayerNorm", name + ".ln_1", {{"", width}, {"eps", shape.eps}}),
           named_layer("CausalSelfAttention", name + ".attn",
                       {{"embed_dim", width}, {"num_heads", shape.heads}, {"dropout", dropout}}),
           named_layer("Dropout", name + ".attn.resid_dropout", {{"p", dropout}})});
  LayerDescription perceptron =
      residual("", {named_layer("LayerNorm", name + ".ln_2", {{"", width}, {"eps", shape.eps}}),
                    named_layer("Linear", name + ".mlp.c_fc", {{"", width}, {"", hidden}}),
                    named_layer("GELU", name + ".mlp.act", {{"approximate", std::string("tanh")}}),
                    named_layer("Linear", name + ".mlp.c_proj", {{"", hidden}, {"", width}}),
                    named_layer("Dropout", name + ".mlp.dropout", {{"p", dropout}})});
  layers.push_back(repeating_block("GPT2Block", {std::move(attention), std::move(perceptron)}));
}

LayerDescription llama_feed_forward(const LlamaShape& shape, const std::string& name) {
  Arguments arguments{{"embed_dim", shape.width}, {"hidden_dim", shape.hidden}};
  if (shape.experts == 0) {
    arguments.push_back({"bias", shape.feed_forward_bias});
    arguments.push_back({"activation", std::string(shape.gelu ? "gelu_tanh" : "silu")});
    return named_layer("SwiGLU", name + ".mlp", std::move(arguments));
  }
  arguments.push_back({"num_experts", shape.experts});
  arguments.push_back({"top_k", shape.top_k});
  arguments.push_back({"aux_loss_coef", shape.aux_loss_coef});
  return named_layer("MixtureOfExperts", name + ".block_sparse_moe", std::move(arguments));
}

void add_llama_block(const LlamaShape& shape, const std::string& name, Layers& layers) {
  const auto norm = [&](const char* part) {
    return named_layer("RMSNorm", name + part, {{"", shape.width}, {"eps", shape.eps}});
  };
  Arguments heads{{"embed_dim", shape.width},
                  {"num_heads", shape.heads},
                  {"num_kv_heads", shape.key_heads},
                  {"rope_theta", shape.theta},
                  {"sliding_window", shape.window},
                  {"bias", shape.attention_bias},
                  {"qkv_bias", shape.attention_bias || shape.qkv_bias}};
  if (shape.head_width > 0) {
    heads.push_back({"head_dim", shape.head_width});
  }
  if (shape.qk_norm) {
    heads.push_back({"qk_norm_eps", shape.eps});
  }
  LayerDescription attention =
      residual("", {norm(".input_layernorm"),
                    named_layer("GroupedQueryAttention", name + ".self_attn", std::move(heads))});
  LayerDescription perceptron =
      residual("", {norm(".post_attention_layernorm"), llama_feed_forward(shape, name)});
  layers.push_back(repeating_block(std::string(shape.block_class),
                                   {std::move(attention), std::move(perceptron)}));
}

}  // namespace

NetworkDescription describe_gpt(std::string_view name, const GptShape& shape, int64_t seq_len,
                                double dropout) {
  NetworkDescription network{
      .name = std::string(name), .input = Shape{seq_len}, .input_dtype = DType::int64};
  // Published checkpoints have so many positions; a longer sequence needs as many as it is long.
  const int64_t positions = std::max(shape.positions, seq_len);
  network.layers = {
      named_layer("Embedding", "transformer.wte", {{"", shape.vocabulary}, {"", shape.width}}),
      named_layer("PositionalEmbedding", "transformer.wpe", {{"", positions}, {"", shape.width}}),
      named_layer("Dropout", "transformer.drop", {{"p", dropout}})};
  for (int64_t block = 0; block < shape.layers; ++block) {
    add_gpt_block(shape, fmt::format("transformer.h.{}", block), dropout, network.layers);
  }
  network.layers.push_back(
      named_layer("LayerNorm", "transformer.ln_f", {{"", shape.width}, {"eps", shape.eps}}));
  Arguments head{{"", shape.width}, {"", shape.vocabulary}, {"bias", false}};
  if (shape.is_tied) {
    head.push_back({"tied_to", std::string("transformer.wte")});
  }
  network.layers.push_back(named_layer("Linear", "lm_head", std::move(head)));
  return network;
}

NetworkDescription describe_llama(std::string_view name, const LlamaShape& shape, int64_t seq_len) {
  NetworkDescription network{
      .name = std::string(name), .input = Shape{seq_len}, .input_dtype = DType::int64};
  network.layers = {
      named_layer("Embedding", "model.embed_tokens", {{"", shape.vocabulary}, {"", shape.width}})};
  if (shape.scales_embedding) {
    network.layers.push_back(named_layer(
        "Scale", "model.scale", {{"factor", std::sqrt(static_cast<double>(shape.width))}}));
  }
  for (int64_t block = 0; block < shape.layers; ++block) {
    add_llama_block(shape, fmt::format("model.layers.{}", block), network.layers);
  }
  network.layers.push_back(
      named_layer("RMSNorm", "model.norm", {{"", shape.width}, {"eps", shape.eps}}));
  Arguments head{{"", shape.width}, {"", shape.vocabulary}, {"bias", false}};
  if (shape.is_tied) {
    head.push_back({"tied_to", std::string("model.embed_tokens")});
  }
  network.layers.push_back(named_layer("Linear", "lm_head", std::move(head)));
  return network;
}

std::optional<NetworkDescription> describe_text_preset(std::string_view name,
                                                       ArgumentReader& arguments) {
  if (const auto* gpt = std::ranges::find(gpts, name, &NamedGpt::name); gpt != std::end(gpts)) {
    GptShape shape = gpt->shape;
    shape.vocabulary = arguments.integer("vocab_size", shape.vocabulary);
    const int64_t seq_len = arguments.integer("seq_len", shape.positions);
    return describe_gpt(name, shape, seq_len, arguments.number("dropout", 0.1));
  }
  if (const auto* llama = std::ranges::find(llamas, name, &NamedLlama::name);
      llama != std::end(llamas)) {
    LlamaShape shape = llama->shape;
    shape.vocabulary = arguments.integer("vocab_size", shape.vocabulary);
    return describe_llama(name, shape, arguments.integer("seq_len", shape.positions));
  }
  std::optional<NetworkDescription> pair = describe_encoder_decoder_preset(name, arguments);
  return pair ? std::move(pair) : describe_opt_preset(name, arguments);
}

}  // namespace lockstep
