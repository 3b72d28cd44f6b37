// BERT: Devlin et al. 2019; parameters as in Hugging Face's BertModel. The two rows of token types
// stand behind the positions, so that adding them is not a kernel of its own. The pooler computes
// every position, and BERT's the first one alone: less than 1 % of the FLOPs.
#include "model/network/bert.hpp"

#include <algorithm>

namespace lockstep {

NetworkDescription describe_bert(std::string_view name, ArgumentReader& arguments) {
  BertShape shape;
  if (name.ends_with("large")) {
    shape = {.layers = 24, .heads = 16, .width = 1024, .hidden = 4096};
  }
  int64_t unused_positions = 0;
  if (name.starts_with("roberta")) {  // Liu et al. 2019: no types; two positions are for padding
    shape.vocabulary = 50265;
    shape.positions = 514;
    shape.token_types = 1;
    shape.eps = 1e-5;
    unused_positions = 2;
  }
  const int64_t seq_len = arguments.integer("seq_len", shape.positions - unused_positions);
  shape.positions = std::max(shape.positions, seq_len + unused_positions);
  shape.vocabulary = arguments.integer("vocab_size", shape.vocabulary);
  return describe_bert(name, shape, seq_len, arguments.number("dropout", 0.1));
}

NetworkDescription describe_bert(std::string_view name, const BertShape& shape, int64_t seq_len,
                                 double dropout) {
  const int64_t width = shape.width;
  const auto part = [](std::string kind, std::string part_name, std::vector<NamedArgument> given) {
    given.push_back({"name", std::move(part_name)});
    return LayerDescription{.kind = std::move(kind), .arguments = std::move(given)};
  };
  NetworkDescription network{
      .name = std::string(name), .input = Shape{seq_len}, .input_dtype = DType::int64};
  network.layers = {
      part("Embedding", "embeddings.word_embeddings", {{"", shape.vocabulary}, {"", width}}),
      part("PositionalEmbedding", "embeddings.position_embeddings",
           {{"", std::max(shape.positions, seq_len) + shape.token_types}, {"", width}}),
      part("LayerNorm", "embeddings.LayerNorm", {{"", width}, {"eps", shape.eps}}),
      part("Dropout", "embeddings.dropout", {{"p", dropout}})};
  for (int64_t block = 0; block < shape.layers; ++block) {
    network.layers.push_back(part("TransformerEncoderLayer",
                                  "encoder.layer." + std::to_string(block),
                                  {{"d_model", width},
                                   {"nhead", shape.heads},
                                   {"dim_feedforward", shape.hidden},
                                   {"dropout", dropout},
                                   {"activation", std::string("gelu")},
                                   {"layer_norm_eps", shape.eps}}));
  }
  network.layers.push_back(part("Linear", "pooler.dense", {{"", width}, {"", width}}));
  network.layers.push_back(part("Tanh", "pooler.activation", {}));
  return network;
}

}  // namespace lockstep
