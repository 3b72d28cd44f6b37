#pragma once

#include <string>
#include <string_view>

#include "io/table/throughput_table.hpp"

// The section `model` of networks that rows name, in the words of the scenario format.

namespace lockstep::cli {

/// Dimensions of a transformer; 0: not known.
struct TransformerShape {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t ffn = 0;
  int64_t vocabulary = 0;
  int64_t seq_len = 0;
  int64_t key_heads = 0;  ///< 0: as many as heads
};

/// How a transformer is written down.
struct TransformerForm {
  std::string_view attention = "math";  ///< the value of `model.attention`
  std::string checkpointing{};          ///< of `model.activation_checkpointing`; empty: none
  double dropout = 0;
  /// Ranks that compute a layer together. Above 1, attention is in four projections, which can be
  /// cut by heads, without positions that are learned, and the last layer has its own weight.
  int64_t tensor = 1;
};

/// The encoder of BERT. The head over the vocabulary computes masked positions alone, which no
/// layer selects: a head over all positions with as many FLOPs stands for it.
std::string encoder_yaml(const TransformerShape& shape, const TransformerForm& form,
                         bool answers_questions);
/// GPT: norms first, learned positions, a last layer with the weight of the embedding.
std::string decoder_yaml(const TransformerShape& shape, const TransformerForm& form);
/// Llama: RMSNorm, rotary attention, a gated feed-forward.
std::string gated_yaml(const TransformerShape& shape, const TransformerForm& form);
/// Transformer-XL over a segment of n positions and a memory of as many. A head computes two
/// products for n x 2n scores (contents and relative positions) and one weighted sum; keys and
/// values are of 2n positions. Four heads of queries of three quarters of the width, with one head
/// of keys, stand for a head: as many scores (two matrices), as many FLOPs in products of scores
/// and, within 3 %, of projections. Seldom words of the adaptive softmax are left out.
std::string memory_yaml(const TransformerShape& shape, const TransformerForm& form,
                        int64_t frequent_words);
/// Dosovitskiy et al. 2021, patches of 16 x 16 of an image of 224 x 224.
std::string vision_transformer_yaml(const TransformerShape& shape);

/// Sandler et al. 2018, table 2, with ReLU for ReLU6.
std::string mobilenet_yaml();
/// RegNetY-3.2GF (Radosavovic et al. 2020, table 4): groups of 24 channels, squeeze-and-excitation
/// to a quarter of a block's input.
std::string regnet_yaml();
/// SSD300 with ResNet-50 as NVIDIA/DeepLearningExamples has it (its ssd/model.py for PyTorch):
/// without the last stage, and the third without stride. What a head gives goes on beside its map:
/// the next convolution is wider by it. The loss over boxes is that over classes.
std::string ssd_yaml();

}  // namespace lockstep::cli
