// Configurations of Qwen3, Gemma, BART and T5. Defaults are those of transformers' Qwen3Config,
// GemmaConfig, BartConfig and T5Config.
#include "model/network/config_reader.hpp"

namespace lockstep {

NetworkDescription describe_qwen3_config(ConfigReader& config, const ConfiguredSize& size) {
  LlamaShape shape = llama_shape(config);
  config.word("hidden_act", "silu");
  config.truth("use_sliding_window", false);
  const bool bias = config.arguments().boolean("attention_bias", false);
  shape.attention_bias = bias;
  if (shape.head_width == 0) {
    shape.head_width = 128;
  }
  shape.qk_norm = true;
  shape.block_class = "Qwen3DecoderLayer";
  return config.ok() ? describe_llama("qwen3", shape, size.seq_len.value_or(shape.positions))
                     : NetworkDescription{};
}

// Its norms multiply by 1 + weight: as many operations, and a weight that begins as 0 in place
// of 1.
NetworkDescription describe_gemma_config(ConfigReader& config, const ConfiguredSize& size) {
  LlamaShape shape = llama_shape(config);
  // transformers computes the approximation where `hidden_activation` is missing, whatever
  // `hidden_act` says.
  const std::string activation = config.arguments().text(
      "hidden_activation", config.arguments().text("hidden_act", "gelu_pytorch_tanh"));
  if (activation != "gelu_pytorch_tanh" && activation != "gelu") {
    config.arguments().lack(fmt::format("`hidden_act: {}` is not modelled yet", activation),
                            "`gelu_pytorch_tanh` is");
  }
  shape.attention_bias = config.arguments().boolean("attention_bias", false);
  if (shape.head_width == 0) {
    shape.head_width = 256;
  }
  shape.is_tied = config.arguments().boolean("tie_word_embeddings", true);
  shape.gelu = true;
  shape.scales_embedding = true;
  shape.block_class = "GemmaDecoderLayer";
  return config.ok() ? describe_llama("gemma", shape, size.seq_len.value_or(shape.positions))
                     : NetworkDescription{};
}

NetworkDescription describe_bart_config(ConfigReader& config, const ConfiguredSize& size) {
  BartShape shape;
  shape.layers = config.layers("encoder_layers");
  shape.decoder_layers = config.layers("decoder_layers");
  shape.heads = config.size("encoder_attention_heads");
  shape.width = config.size("d_model");
  shape.hidden = config.size("encoder_ffn_dim");
  shape.vocabulary = config.size("vocab_size", 50265);
  shape.positions = config.size("max_position_embeddings", 1024);
  config.word("activation_function", "gelu");
  config.truth("scale_embedding", false);
  config.divides(shape.heads, shape.width, "encoder_attention_heads", "d_model");
  if (config.ok() && (config.size("decoder_attention_heads", shape.heads) != shape.heads ||
                      config.size("decoder_ffn_dim", shape.hidden) != shape.hidden)) {
    config.arguments().lack(
        "a decoder with other heads or another width of its feed-forward than "
        "the encoder's is not modelled yet",
        "write the encoder's");
  }
  const int64_t source = size.seq_len.value_or(shape.positions);
  const double dropout = config.arguments().number("dropout", 0.1);
  return config.ok() ? describe_bart("bart", shape, {source, size.target_len.value_or(source)},
                                     size.dropout.value_or(dropout))
                     : NetworkDescription{};
}

NetworkDescription describe_t5_config(ConfigReader& config, const ConfiguredSize& size) {
  T5Shape shape;
  shape.layers = config.layers("num_layers");
  shape.decoder_layers = config.arguments().has("num_decoder_layers")
                             ? config.layers("num_decoder_layers")
                             : shape.layers;
  shape.heads = config.size("num_heads");
  shape.width = config.size("d_model");
  shape.head_width = config.size("d_kv", 64);
  shape.hidden = config.size("d_ff");
  shape.vocabulary = config.size("vocab_size", 32128);
  shape.buckets = config.size("relative_attention_num_buckets", 32);
  shape.max_distance = config.size("relative_attention_max_distance", 128);
  shape.eps = config.arguments().number("layer_norm_epsilon", 1e-6);
  shape.is_tied = config.arguments().boolean("tie_word_embeddings", true);
  const std::string feed_forward = config.arguments().text("feed_forward_proj", "relu");
  shape.is_gated = feed_forward == "gated-gelu";
  if (feed_forward != "relu" && !shape.is_gated) {
    config.arguments().lack(
        fmt::format("`feed_forward_proj: {}` is not modelled yet", feed_forward),
        "`relu` and `gated-gelu` are");
  }
  config.truth("is_encoder_decoder", true);
  const int64_t positions = config.size("n_positions", 512);
  const int64_t source = size.seq_len.value_or(positions);
  const double dropout = config.arguments().number("dropout_rate", 0.1);
  return config.ok() ? describe_t5("t5", shape, {source, size.target_len.value_or(source)},
                                   size.dropout.value_or(dropout))
                     : NetworkDescription{};
}

}  // namespace lockstep
