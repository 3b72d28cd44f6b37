#pragma once

#include <string_view>

#include "model/network/argument_reader.hpp"
#include "model/network/description.hpp"

namespace lockstep {

/// bert-base or bert-large: the encoder and its pooler without heads. Arguments: `seq_len
/// vocab_size dropout`.
NetworkDescription describe_bert(std::string_view name, ArgumentReader& arguments);

}  // namespace lockstep
