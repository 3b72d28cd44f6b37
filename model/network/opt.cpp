// OPT: Zhang et al. 2022, table 1; names as in Hugging Face's OPTForCausalLM.
#include <fmt/format.h>

#include <algorithm>

#include "model/network/published.hpp"

namespace lockstep {

namespace {

struct NamedOpt {
  std::string_view name;
  OptShape shape;
};
constexpr NamedOpt opts[] = {
    {"opt-125m", {12, 12, 768, 3072}},   {"opt-1.3b", {24, 32, 2048, 8192}},
    {"opt-2.7b", {32, 32, 2560, 10240}}, {"opt-6.7b", {32, 32, 4096, 16384}},
    {"opt-13b", {40, 40, 5120, 20480}},  {"opt-30b", {48, 56, 7168, 28672}},
    {"opt-66b", {64, 72, 9216, 36864}},  {"opt-175b", {96, 96, 12288, 49152}},
};

// Rows of the embedding of positions that none of the sequence uses.
constexpr int64_t padding_positions = 2;

void add_opt_block(const OptShape& shape, const std::string& name, double dropout, Layers& layers) {
  const int64_t width = shape.width;
  LayerDescription attention =
      residual("", {named_layer("LayerNorm", name + ".self_attn_layer_norm", {{"", width}}),
                    named_layer("CausalSelfAttention", name + ".self_attn",
                                {{"embed_dim", width},
                                 {"num_heads", shape.heads},
                                 {"dropout", shape.attention_dropout}}),
                    named_layer("Dropout", name + ".attention_dropout", {{"p", dropout}})});
  LayerDescription perceptron =
      residual("", {named_layer("LayerNorm", name + ".final_layer_norm", {{"", width}}),
                    named_layer("Linear", name + ".fc1", {{"", width}, {"", shape.hidden}}),
                    named_layer("ReLU", name + ".activation_fn"),
                    named_layer("Linear", name + ".fc2", {{"", shape.hidden}, {"", width}}),
                    named_layer("Dropout", name + ".dropout", {{"p", dropout}})});
  layers.push_back(
      repeating_block("OPTDecoderLayer", {std::move(attention), std::move(perceptron)}));
}

}  // namespace

NetworkDescription describe_opt(std::string_view name, const OptShape& shape, int64_t seq_len,
                                double dropout) {
  NetworkDescription network{
      .name = std::string(name), .input = Shape{seq_len}, .input_dtype = DType::int64};
  const int64_t positions = std::max(shape.positions, seq_len) + padding_positions;
  network.layers = {named_layer("Embedding", "model.decoder.embed_tokens",
                                {{"", shape.vocabulary}, {"", shape.width}}),
                    named_layer("PositionalEmbedding", "model.decoder.embed_positions",
                                {{"", positions}, {"", shape.width}})};
  for (int64_t block = 0; block < shape.layers; ++block) {
    add_opt_block(shape, fmt::format("model.decoder.layers.{}", block), dropout, network.layers);
  }
  network.layers.push_back(
      named_layer("LayerNorm", "model.decoder.final_layer_norm", {{"", shape.width}}));
  Arguments head{{"", shape.width}, {"", shape.vocabulary}, {"bias", false}};
  if (shape.is_tied) {
    head.push_back({"tied_to", std::string("model.decoder.embed_tokens")});
  }
  network.layers.push_back(named_layer("Linear", "lm_head", std::move(head)));
  return network;
}

std::optional<NetworkDescription> describe_opt_preset(std::string_view name,
                                                      ArgumentReader& arguments) {
  const auto* opt = std::ranges::find(opts, name, &NamedOpt::name);
  if (opt == std::end(opts)) {
    return std::nullopt;
  }
  OptShape shape = opt->shape;
  shape.vocabulary = arguments.integer("vocab_size", shape.vocabulary);
  const int64_t seq_len = arguments.integer("seq_len", shape.positions);
  return describe_opt(name, shape, seq_len, arguments.number("dropout", 0.1));
}

}  // namespace lockstep
