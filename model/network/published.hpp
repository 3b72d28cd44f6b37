#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/network/argument_reader.hpp"
#include "model/network/description.hpp"

namespace lockstep {

// Families of published networks, by the sizes in which their members differ. Presets and
// configurations of Hugging Face are made of these.

/// GPT-2 (Radford et al. 2019): pre-norm, learnt positions, the head tied to the embedding.
struct GptShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t positions = 1024;
  int64_t vocabulary = 50257;
  int64_t hidden = 0;  ///< of the feed-forward; 0: 4 times the width
  double eps = 1e-5;
  bool is_tied = true;
};
/// Llama (Touvron et al. 2023) and Mistral (Jiang et al. 2023): RMSNorm before rotary grouped-query
/// attention and SwiGLU.
struct LlamaShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t key_heads = 0;
  int64_t width = 0;
  int64_t hidden = 0;
  int64_t vocabulary = 32000;
  int64_t positions = 4096;
  double theta = 10000;
  int64_t window = 0;
  int64_t head_width = 0;  ///< 0: the width over the heads
  double eps = 1e-5;
  bool is_tied = false;
  bool attention_bias = false;
  bool feed_forward_bias = false;
  bool qkv_bias = false;  ///< of the projections before attention; attention_bias is of all four
  std::string_view block_class = "LlamaDecoderLayer";
  int64_t experts = 0;  ///< 0: one feed-forward; else as Mixtral (Jiang et al. 2024)
  int64_t top_k = 0;
  double aux_loss_coef = 0;
  bool qk_norm = false;           ///< of each head of query and key, as Qwen3
  bool gelu = false;              ///< of the gate, as Gemma
  bool scales_embedding = false;  ///< by the square root of the width, as Gemma
};
/// OPT (Zhang et al. 2022): pre-norm, learnt positions behind two rows for padding, ReLU.
struct OptShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t hidden = 0;
  int64_t positions = 2048;
  int64_t vocabulary = 50272;
  bool is_tied = true;
  double attention_dropout = 0;
};
/// Vision transformer (Dosovitskiy et al. 2021): pre-norm encoder behind a class token.
struct VitShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t hidden = 0;
  int64_t patch = 16;
  int64_t image = 224;
  int64_t channels = 3;
  int64_t classes = 1000;
  double eps = 1e-6;
};

/// T5 (Raffel et al. 2020): encoder and decoder that share an embedding, RMSNorm before each part,
/// a bias by relative position for all blocks of a stack, scores without a factor.
struct T5Shape {
  int64_t layers = 0;
  int64_t decoder_layers = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t head_width = 64;
  int64_t hidden = 0;
  int64_t vocabulary = 32128;
  int64_t buckets = 32;
  int64_t max_distance = 128;
  double eps = 1e-6;
  bool is_tied = true;
  bool is_gated = false;  ///< GELU of a gate in place of ReLU (T5 1.1)
};
/// BART (Lewis et al. 2020).
struct BartShape {
  int64_t layers = 0;
  int64_t decoder_layers = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t hidden = 0;
  int64_t vocabulary = 50265;
  int64_t positions = 1024;
};
/// Tokens of a sample: those of the encoder, then those of the decoder.
struct SequencePair {
  int64_t source = 0;
  int64_t target = 0;
};

NetworkDescription describe_gpt(std::string_view name, const GptShape& shape, int64_t seq_len,
                                double dropout);
NetworkDescription describe_llama(std::string_view name, const LlamaShape& shape, int64_t seq_len);
NetworkDescription describe_opt(std::string_view name, const OptShape& shape, int64_t seq_len,
                                double dropout);
NetworkDescription describe_t5(std::string_view name, const T5Shape& shape,
                               const SequencePair& positions, double dropout);
NetworkDescription describe_bart(std::string_view name, const BartShape& shape,
                                 const SequencePair& positions, double dropout);
NetworkDescription describe_vit(std::string_view name, const VitShape& shape, double dropout);

// Presets, which read their shape arguments themselves; nothing for other names.
std::optional<NetworkDescription> describe_text_preset(std::string_view name,
                                                       ArgumentReader& arguments);
std::optional<NetworkDescription> describe_image_preset(std::string_view name,
                                                        ArgumentReader& arguments);
std::optional<NetworkDescription> describe_encoder_decoder_preset(std::string_view name,
                                                                  ArgumentReader& arguments);
std::optional<NetworkDescription> describe_bart_preset(std::string_view name,
                                                       ArgumentReader& arguments);
std::optional<NetworkDescription> describe_opt_preset(std::string_view name,
                                                      ArgumentReader& arguments);
std::optional<NetworkDescription> describe_mobile_preset(std::string_view name,
                                                         ArgumentReader& arguments);
std::optional<NetworkDescription> describe_window_preset(std::string_view name,
                                                         ArgumentReader& arguments);
std::optional<NetworkDescription> describe_densenet(std::string_view name,
                                                    ArgumentReader& arguments);

// Parts of descriptions.

using Arguments = std::vector<NamedArgument>;
using Layers = std::vector<LayerDescription>;

LayerDescription named_layer(std::string kind, std::string name, Arguments arguments = {});
LayerDescription residual(std::string name, Layers layers, Layers shortcut = {});
/// What repeats; without a name it adds no level to the names inside.
LayerDescription repeating_block(std::string class_name, Layers layers);

}  // namespace lockstep
