// Transformers of rows, layer by layer.
#include <fmt/format.h>

#include <algorithm>

#include "rehearsal/accuracy/row_networks.hpp"

namespace lockstep::cli {

namespace {

std::string head_of_model(const TransformerForm& form, int64_t positions) {
  std::string text = fmt::format("model:\n  attention: {}\n", form.attention);
  if (!form.checkpointing.empty()) {
    text += fmt::format("  activation_checkpointing: {}\n", form.checkpointing);
  }
  return text + fmt::format("  input: [{}]\n  layers:\n", positions);
}

/// Pre-training predicts the masked positions alone: so many of a sequence (google-research/bert,
/// create_pretraining_data.py: max_predictions_per_seq 20 of 128 and 80 of 512).
int64_t masked_positions(int64_t seq_len) { return std::max<int64_t>(1, seq_len * 20 / 128); }

/// As Megatron-LM pads it (--make-vocab-size-divisible-by 128, for each rank).
int64_t padded(int64_t vocabulary, int64_t tensor) {
  const int64_t unit = 128 * tensor;
  return tensor == 1 ? vocabulary : (vocabulary + unit - 1) / unit * unit;
}

std::string grouped_attention(const TransformerShape& shape) {
  return fmt::format(
      "{{GroupedQueryAttention: {{embed_dim: {}, num_heads: {}, num_kv_heads: {}}}}}", shape.hidden,
      shape.heads, shape.key_heads == 0 ? shape.heads : shape.key_heads);
}

/// Two Linears with GELU between.
std::string feed_forward(const TransformerShape& shape) {
  return fmt::format("{{Linear: [{}, {}]}}, {{GELU: {{approximate: tanh}}}}, {{Linear: [{}, {}]}}",
                     shape.hidden, shape.ffn, shape.ffn, shape.hidden);
}

/// Norms behind the sums, as BERT has them, in layers that can be cut.
std::string encoder_block(const TransformerShape& shape) {
  return fmt::format(
      "    - repeat: {}\n      layers:\n"
      "        - {{Residual: {{layers: [{}, {{Dropout: {{p: 0.1}}}}]}}}}\n"
      "        - {{LayerNorm: {}}}\n"
      "        - {{Residual: {{layers: [{}, {{Dropout: {{p: 0.1}}}}]}}}}\n"
      "        - {{LayerNorm: {}}}\n",
      shape.layers, grouped_attention(shape), shape.hidden, feed_forward(shape), shape.hidden);
}

}  // namespace

std::string encoder_yaml(const TransformerShape& shape, const TransformerForm& form,
                         bool answers_questions) {
  const int64_t predicted =
      shape.vocabulary * masked_positions(shape.seq_len) / std::max<int64_t>(1, shape.seq_len);
  const int64_t classes = answers_questions ? 2 : padded(predicted, form.tensor);
  const std::string positions =
      form.tensor == 1 ? fmt::format("    - {{PositionalEmbedding: [{}, {}]}}\n",
                                     std::max<int64_t>(512, shape.seq_len) + 2, shape.hidden)
                       : "";
  const std::string blocks =
      form.tensor == 1
          ? fmt::format(
                "    - {{repeat: {}, layers: [{{TransformerEncoderLayer: {{d_model: {}, nhead: {}, "
                "dim_feedforward: {}, activation: gelu}}}}]}}\n",
                shape.layers, shape.hidden, shape.heads, shape.ffn)
          : encoder_block(shape);
  return head_of_model(form, shape.seq_len) +
         fmt::format(
             "    - {{Embedding: [{}, {}]}}\n{}    - {{LayerNorm: {}}}\n"
             "    - {{Dropout: {{p: 0.1}}}}\n",
             padded(shape.vocabulary, form.tensor), shape.hidden, positions, shape.hidden) +
         blocks + fmt::format("    - {{Linear: [{}, {}]}}\n", shape.hidden, classes);
}

std::string decoder_yaml(const TransformerShape& shape, const TransformerForm& form) {
  const int64_t h = shape.hidden;
  const double dropout = form.dropout;
  const int64_t vocabulary = padded(shape.vocabulary, form.tensor);
  const bool is_cut = form.tensor > 1;
  const std::string positions =
      is_cut ? "" : fmt::format("    - {{PositionalEmbedding: [{}, {}]}}\n", shape.seq_len, h);
  const std::string attention =
      is_cut ? grouped_attention(shape)
             : fmt::format("{{CausalSelfAttention: {{embed_dim: {}, num_heads: {}, dropout: {}}}}}",
                           h, shape.heads, dropout);
  return head_of_model(form, shape.seq_len) +
         fmt::format(
             "    - {{Embedding: [{}, {}], name: wte}}\n{}    - {{Dropout: {{p: {}}}}}\n"
             "    - repeat: {}\n      layers:\n"
             "        - {{Residual: {{layers: [{{LayerNorm: {}}}, {}, {{Dropout: {{p: {}}}}}]}}}}\n"
             "        - {{Residual: {{layers: [{{LayerNorm: {}}}, {}, {{Dropout: {{p: {}}}}}]}}}}\n"
             "    - {{LayerNorm: {}}}\n"
             "    - {{Linear: {{in_features: {}, out_features: {}, bias: false{}}}}}\n",
             vocabulary, h, positions, dropout, shape.layers, h, attention, dropout, h,
             feed_forward(shape), dropout, h, h, vocabulary, is_cut ? "" : ", tied_to: wte");
}

std::string gated_yaml(const TransformerShape& shape, const TransformerForm& form) {
  const int64_t h = shape.hidden;
  const int64_t vocabulary = padded(shape.vocabulary, form.tensor);
  return head_of_model(form, shape.seq_len) +
         fmt::format(
             "    - {{Embedding: [{}, {}]}}\n"
             "    - repeat: {}\n      layers:\n"
             "        - {{Residual: {{layers: [{{RMSNorm: {}}}, {}]}}}}\n"
             "        - {{Residual: {{layers: [{{RMSNorm: {}}}, {{SwiGLU: {{embed_dim: {}, "
             "hidden_dim: {}}}}}]}}}}\n"
             "    - {{RMSNorm: {}}}\n"
             "    - {{Linear: {{in_features: {}, out_features: {}, bias: false}}}}\n",
             vocabulary, h, shape.layers, h, grouped_attention(shape), h, h, shape.ffn, h, h,
             vocabulary);
}

std::string memory_yaml(const TransformerShape& shape, const TransformerForm& form,
                        int64_t frequent_words) {
  const int64_t h = shape.hidden;
  const double p = form.dropout;
  return head_of_model(form, shape.seq_len) +
         fmt::format(
             "    - {{Embedding: [{}, {}]}}\n    - {{Dropout: {{p: {}}}}}\n"
             "    - repeat: {}\n      layers:\n"
             "        - {{Residual: {{layers: [{{GroupedQueryAttention: {{embed_dim: {}, "
             "num_heads: {}, num_kv_heads: {}, head_dim: {}}}}}, {{Dropout: {{p: {}}}}}]}}}}\n"
             "        - {{LayerNorm: {}}}\n"
             "        - {{Residual: {{layers: [{{Linear: [{}, {}]}}, ReLU, {{Dropout: {{p: {}}}}}, "
             "{{Linear: [{}, {}]}}, {{Dropout: {{p: {}}}}}]}}}}\n"
             "        - {{LayerNorm: {}}}\n"
             "    - {{Linear: [{}, {}]}}\n",
             shape.vocabulary, h, p, shape.layers, h, 4 * shape.heads, 1, 3 * h / shape.heads / 4,
             p, h, h, shape.ffn, p, shape.ffn, h, p, h, h, frequent_words);
}

std::string vision_transformer_yaml(const TransformerShape& shape) {
  const int64_t h = shape.hidden;
  return fmt::format(
      "model:\n  attention: math\n  input: [3, 224, 224]\n  layers:\n"
      "    - {{Conv2d: {{in_channels: 3, out_channels: {}, kernel_size: 16, stride: 16}}}}\n"
      "    - {{PatchSequence: {}}}\n    - {{PositionalEmbedding: [197, {}]}}\n"
      "    - {{repeat: {}, layers: [{{TransformerEncoderLayer: {{d_model: {}, nhead: {}, "
      "dim_feedforward: {}, dropout: 0, activation: gelu, norm_first: true}}}}]}}\n"
      "    - {{LayerNorm: {}}}\n    - FirstPosition\n    - {{Linear: [{}, 1000]}}\n",
      h, h, h, shape.layers, h, shape.heads, shape.ffn, h, h);
}

}  // namespace lockstep::cli
