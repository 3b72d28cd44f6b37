#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/network/build.hpp"
#include "model/network/description.hpp"

namespace lockstep {

/// A network that a configuration of Hugging Face describes, and what of it is not modelled and
/// changes neither time nor memory.
struct ConfiguredNetwork {
  NetworkDescription description{};
  std::vector<std::string> notes{};
};

/// What stands beside the configuration in a scenario and goes before it.
struct ConfiguredSize {
  std::optional<int64_t> seq_len{};
  std::optional<int64_t> target_len{};  ///< of the decoder, where there is an encoder
  std::optional<double> dropout{};
  std::optional<int64_t> num_classes{};
};

/// `config`: the keys of a config.json whose values are truth values, numbers or texts; of
/// `id2label`, how many labels it has. Families: llama, mistral, mixtral, qwen2, phi3, gpt2, opt,
/// bert, roberta, vit, qwen3, gemma, t5, bart.
std::variant<ConfiguredNetwork, NetworkError> describe_config(
    const std::vector<NamedArgument>& config, const ConfiguredSize& size);

}  // namespace lockstep
