// BART (Lewis et al. 2020): an encoder and a decoder with learnt positions, norms behind each part,
// a shared embedding that is the head, too.
#include <fmt/format.h>

#include <algorithm>

#include "model/network/published.hpp"

namespace lockstep {

namespace {

struct NamedBart {
  std::string_view name;
  BartShape shape;
};
// config.json of the published checkpoints.
constexpr NamedBart barts[] = {{"bart-base", {6, 6, 12, 768, 3072}},
                               {"bart-large", {12, 12, 16, 1024, 4096}}};
/// Rows of the embedding of positions that no position has.
constexpr int64_t unused_positions = 2;

class BartParts {
 public:
  BartParts(const BartShape& shape, double dropout) : shape_(shape), dropout_(dropout) {}

  /// Positions, norm and blocks of one stack; `count` tokens from `first` of the sample.
  Layers stack(const std::string& name, int64_t first, int64_t count, bool is_decoder) const {
    const int64_t positions = std::max(shape_.positions, count) + unused_positions;
    Layers layers = {
        named_layer("Positions", name + ".tokens", {{"first", first}, {"count", count}}),
        named_layer("PositionalEmbedding", name + ".embed_positions",
                    {{"", positions}, {"", shape_.width}}),
        norm(name + ".layernorm_embedding"), drop(name + ".dropout")};
    const int64_t blocks = is_decoder ? shape_.decoder_layers : shape_.layers;
    for (int64_t block = 0; block < blocks; ++block) {
      layers.push_back(is_decoder ? decoder_block(fmt::format("{}.layers.{}", name, block))
                                  : encoder_block(fmt::format("{}.layers.{}", name, block)));
    }
    return layers;
  }

 private:
  LayerDescription norm(const std::string& name) const {
    return named_layer("LayerNorm", name, {{"", shape_.width}});
  }
  LayerDescription drop(const std::string& name) const {
    return named_layer("Dropout", name, {{"p", dropout_}});
  }
  LayerDescription attention(const char* kind, const std::string& name) const {
    return named_layer(kind, name, {{"embed_dim", shape_.width}, {"num_heads", shape_.heads}});
  }
  void add_part(const std::string& name, const std::string& norm_name, Layers inside,
                Layers& layers) const {
    inside.push_back(drop(name + ".dropout"));
    layers.push_back(residual("", std::move(inside)));
    layers.push_back(norm(norm_name));
  }
  void add_feed_forward(const std::string& name, Layers& layers) const {
    add_part(name + ".fc2", name + ".final_layer_norm",
             {named_layer("Linear", name + ".fc1", {{"", shape_.width}, {"", shape_.hidden}}),
              named_layer("GELU", name + ".activation_fn"),
              named_layer("Linear", name + ".fc2", {{"", shape_.hidden}, {"", shape_.width}})},
             layers);
  }
  LayerDescription encoder_block(const std::string& name) const {
    Layers layers;
    add_part(name + ".self_attn", name + ".self_attn_layer_norm",
             {attention("MultiheadAttention", name + ".self_attn")}, layers);
    add_feed_forward(name, layers);
    return repeating_block("BartEncoderLayer", std::move(layers));
  }
  LayerDescription decoder_block(const std::string& name) const {
    Layers layers;
    add_part(name + ".self_attn", name + ".self_attn_layer_norm",
             {attention("CausalSelfAttention", name + ".self_attn")}, layers);
    add_part(name + ".encoder_attn", name + ".encoder_attn_layer_norm",
             {attention("CrossAttention", name + ".encoder_attn")}, layers);
    add_feed_forward(name, layers);
    return repeating_block("BartDecoderLayer", std::move(layers));
  }

  const BartShape& shape_;
  double dropout_;
};

}  // namespace

NetworkDescription describe_bart(std::string_view name, const BartShape& shape,
                                 const SequencePair& positions, double dropout) {
  const BartParts parts(shape, dropout);
  NetworkDescription network{.name = std::string(name),
                             .input = Shape{positions.source + positions.target},
                             .input_dtype = DType::int64};
  LayerDescription both = named_layer("Aside", "", {{"as", std::string("encoder")}});
  both.shortcut = parts.stack("model.encoder", 0, positions.source, false);
  both.layers = parts.stack("model.decoder", positions.source, positions.target, true);
  network.layers = {
      named_layer("Embedding", "model.shared", {{"", shape.vocabulary}, {"", shape.width}}),
      std::move(both),
      named_layer("Linear", "lm_head",
                  {{"", shape.width},
                   {"", shape.vocabulary},
                   {"bias", false},
                   {"tied_to", std::string("model.shared")}})};
  return network;
}

std::optional<NetworkDescription> describe_bart_preset(std::string_view name,
                                                       ArgumentReader& arguments) {
  const auto* found = std::ranges::find(barts, name, &NamedBart::name);
  if (found == std::end(barts)) {
    return std::nullopt;
  }
  BartShape shape = found->shape;
  shape.vocabulary = arguments.integer("vocab_size", shape.vocabulary);
  const int64_t source = arguments.integer("seq_len", shape.positions);
  const int64_t target = arguments.integer("target_len", source);
  return describe_bart(name, shape, {source, target}, arguments.number("dropout", 0));
}

}  // namespace lockstep
