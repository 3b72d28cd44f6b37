// BERT: Devlin et al. 2019; parameters as in Hugging Face's BertModel. The two rows of token types
// stand behind the positions, so that adding them is not a kernel of its own. The pooler computes
// every position, and BERT's the first one alone: less than 1 % of the FLOPs.
#include "model/network/bert.hpp"

#include <algorithm>

namespace lockstep {

NetworkDescription describe_bert(std::string_view name, ArgumentReader& arguments) {
  const bool is_large = name == "bert-large";
  const int64_t width = is_large ? 1024 : 768;
  const int64_t blocks = is_large ? 24 : 12;
  constexpr int64_t most_positions = 512;
  constexpr int64_t token_types = 2;
  const int64_t seq_len = arguments.integer("seq_len", most_positions);
  const int64_t vocabulary = arguments.integer("vocab_size", 30522);
  const double dropout = arguments.number("dropout", 0.1);
  const auto part = [](std::string kind, std::string part_name, std::vector<NamedArgument> given) {
    given.push_back({"name", std::move(part_name)});
    return LayerDescription{.kind = std::move(kind), .arguments = std::move(given)};
  };
  NetworkDescription network{
      .name = std::string(name), .input = Shape{seq_len}, .input_dtype = DType::int64};
  network.layers = {
      part("Embedding", "embeddings.word_embeddings", {{"", vocabulary}, {"", width}}),
      part("PositionalEmbedding", "embeddings.position_embeddings",
           {{"", std::max(most_positions, seq_len) + token_types}, {"", width}}),
      part("LayerNorm", "embeddings.LayerNorm", {{"", width}, {"eps", 1e-12}}),
      part("Dropout", "embeddings.dropout", {{"p", dropout}})};
  for (int64_t block = 0; block < blocks; ++block) {
    network.layers.push_back(part("TransformerEncoderLayer",
                                  "encoder.layer." + std::to_string(block),
                                  {{"d_model", width},
                                   {"nhead", width / 64},
                                   {"dim_feedforward", 4 * width},
                                   {"dropout", dropout},
                                   {"activation", std::string("gelu")},
                                   {"layer_norm_eps", 1e-12}}));
  }
  network.layers.push_back(part("Linear", "pooler.dense", {{"", width}, {"", width}}));
  network.layers.push_back(part("Tanh", "pooler.activation", {}));
  return network;
}

}  // namespace lockstep
