#pragma once

#include <string_view>

#include "model/network/argument_reader.hpp"
#include "model/network/description.hpp"

namespace lockstep {

/// BERT (Devlin et al. 2019); the defaults are those of bert-base-uncased.
struct BertShape {
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;
  int64_t hidden = 3072;
  int64_t vocabulary = 30522;
  int64_t positions = 512;
  int64_t token_types = 2;
  double eps = 1e-12;
};
NetworkDescription describe_bert(std::string_view name, const BertShape& shape, int64_t seq_len,
                                 double dropout);

/// bert-base, bert-large, roberta-base or roberta-large: the encoder and its pooler without heads.
/// Arguments: `seq_len vocab_size dropout`.
NetworkDescription describe_bert(std::string_view name, ArgumentReader& arguments);

}  // namespace lockstep
