// Published networks of an encoder and a decoder: T5, with the names of transformers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/network/published.hpp"

namespace lockstep {

namespace {

struct NamedT5 {
  std::string_view name;
  T5Shape shape;
};
// Raffel et al. 2020, section 3.7; config.json of the published checkpoints.
constexpr NamedT5 t5s[] = {{"t5-small", {6, 6, 8, 512, 64, 2048}},
                           {"t5-base", {12, 12, 12, 768, 64, 3072}},
                           {"t5-large", {24, 24, 16, 1024, 64, 4096}},
                           {"t5-3b", {24, 24, 32, 1024, 128, 16384}},
                           {"t5-11b", {24, 24, 128, 1024, 128, 65536}}};
/// Spans of 3 tokens on average hide 15 % of 512 tokens: the decoder gives 114 back (section 3.1.4
/// of the paper; `random_spans_helper` of its code).
constexpr int64_t source_positions = 512;
constexpr int64_t target_positions = 114;

class T5Parts {
 public:
  T5Parts(const T5Shape& shape, double dropout) : shape_(shape), dropout_(dropout) {}

  LayerDescription norm(const std::string& name) const {
    return named_layer("RMSNorm", name, {{"", shape_.width}, {"eps", shape_.eps}});
  }
  LayerDescription drop(const std::string& name) const {
    return named_layer("Dropout", name, {{"p", dropout_}});
  }
  LayerDescription attention(const char* kind, const std::string& name, const char* aside) const {
    return named_layer(kind, name,
                       {{"embed_dim", shape_.width},
                        {"num_heads", shape_.heads},
                        {"head_dim", shape_.head_width},
                        {"scaled", false},
                        {"bias", false},
                        {"aside", std::string(aside)}});
  }
  LayerDescription feed_forward(const std::string& name) const {
    const std::string inside = name + ".DenseReluDense";
    Layers layers = {norm(name + ".layer_norm")};
    if (shape_.is_gated) {
      layers.push_back(named_layer("SwiGLU", inside,
                                   {{"embed_dim", shape_.width},
                                    {"hidden_dim", shape_.hidden},
                                    {"activation", std::string("gelu_tanh")}}));
    } else {
      layers.push_back(product(inside + ".wi", shape_.width, shape_.hidden));
      layers.push_back(named_layer("ReLU", inside + ".act"));
      layers.push_back(drop(inside + ".dropout"));
      layers.push_back(product(inside + ".wo", shape_.hidden, shape_.width));
    }
    layers.push_back(drop(name + ".dropout"));
    return residual("", std::move(layers));
  }
  LayerDescription attending(const std::string& name, LayerDescription attention) const {
    return residual("",
                    {norm(name + ".layer_norm"), std::move(attention), drop(name + ".dropout")});
  }
  LayerDescription product(const std::string& name, int64_t in, int64_t out) const {
    return named_layer("Linear", name, {{"", in}, {"", out}, {"bias", false}});
  }

  /// Blocks that read the bias of the first.
  LayerDescription with_bias(const std::string& stack, bool is_bidirectional, Layers layers) const {
    LayerDescription aside = named_layer("Aside", "", {{"as", std::string("bias")}});
    aside.shortcut = {named_layer("RelativePositionBias",
                                  stack + ".block.0.layer.0.SelfAttention.relative_attention_bias",
                                  {{"num_heads", shape_.heads},
                                   {"num_buckets", shape_.buckets},
                                   {"max_distance", shape_.max_distance},
                                   {"bidirectional", is_bidirectional}})};
    aside.layers = std::move(layers);
    return aside;
  }
  Layers encoder(int64_t positions) const {
    Layers blocks;
    for (int64_t block = 0; block < shape_.layers; ++block) {
      const std::string name = fmt::format("encoder.block.{}.layer.", block);
      blocks.push_back(repeating_block(
          "T5Block",
          {attending(name + "0", attention("BiasedAttention", name + "0.SelfAttention", "bias")),
           feed_forward(name + "1")}));
    }
    return {named_layer("Positions", "encoder.tokens", {{"count", positions}}),
            drop("encoder.dropout"), with_bias("encoder", true, std::move(blocks)),
            norm("encoder.final_layer_norm"), drop("encoder.last_dropout")};
  }
  Layers decoder(int64_t first, int64_t positions) const {
    Layers blocks;
    for (int64_t block = 0; block < shape_.decoder_layers; ++block) {
      const std::string name = fmt::format("decoder.block.{}.layer.", block);
      LayerDescription own = attention("BiasedAttention", name + "0.SelfAttention", "bias");
      own.arguments.push_back({"causal", true});
      blocks.push_back(repeating_block(
          "T5Block", {attending(name + "0", std::move(own)),
                      attending(name + "1",
                                attention("CrossAttention", name + "1.EncDecAttention", "encoder")),
                      feed_forward(name + "2")}));
    }
    return {named_layer("Positions", "decoder.tokens", {{"first", first}, {"count", positions}}),
            drop("decoder.dropout"), with_bias("decoder", false, std::move(blocks)),
            norm("decoder.final_layer_norm"), drop("decoder.last_dropout")};
  }

 private:
  const T5Shape& shape_;
  double dropout_;
};

}  // namespace

NetworkDescription describe_t5(std::string_view name, const T5Shape& shape,
                               const SequencePair& positions, double dropout) {
  const T5Parts parts(shape, dropout);
  NetworkDescription network{.name = std::string(name),
                             .input = Shape{positions.source + positions.target},
                             .input_dtype = DType::int64,
                             .flash_attention = false};
  LayerDescription both = named_layer("Aside", "", {{"as", std::string("encoder")}});
  both.shortcut = parts.encoder(positions.source);
  both.layers = parts.decoder(positions.source, positions.target);
  network.layers = {named_layer("Embedding", "shared", {{"", shape.vocabulary}, {"", shape.width}}),
                    std::move(both)};
  Arguments head{{"", shape.width}, {"", shape.vocabulary}, {"bias", false}};
  if (shape.is_tied) {
    network.layers.push_back(named_layer(
        "Scale", "scale", {{"factor", 1 / std::sqrt(static_cast<double>(shape.width))}}));
    head.push_back({"tied_to", std::string("shared")});
  }
  network.layers.push_back(named_layer("Linear", "lm_head", std::move(head)));
  return network;
}

std::optional<NetworkDescription> describe_encoder_decoder_preset(std::string_view name,
                                                                  ArgumentReader& arguments) {
  const auto* found = std::ranges::find(t5s, name, &NamedT5::name);
  if (found == std::end(t5s)) {
    return describe_bart_preset(name, arguments);
  }
  T5Shape shape = found->shape;
  shape.vocabulary = arguments.integer("vocab_size", shape.vocabulary);
  const int64_t source = arguments.integer("seq_len", source_positions);
  const int64_t target = arguments.integer("target_len", target_positions);
  return describe_t5(name, shape, {source, target}, arguments.number("dropout", 0));
}

}  // namespace lockstep
