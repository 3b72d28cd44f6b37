#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/core/preset_name.hpp"
#include "model/network/build.hpp"
#include "model/network/description.hpp"

namespace lockstep {

/// A published network by name.
struct NetworkPreset {
  std::string_view name{};
  std::string_view summary{};
  std::string_view source{};                  ///< where the architecture is published
  std::vector<std::string_view> arguments{};  ///< shape arguments it takes
};

/// mlp, resnet18, resnet50, gpt2, gpt2-medium, gpt2-large, gpt2-xl, bert-base, bert-large.
std::vector<NetworkPreset> network_presets();

/// What people call networks: other spellings, short forms, and what is not modelled.
PresetAnswer find_network_name(std::string_view asked);
/// All spellings that it knows, names first: for "did you mean".
std::vector<std::string> network_spellings();
std::span<const PresetAlias> network_aliases();
std::span<const UnmodelledPreset> unmodelled_networks();

/// The layers of preset `name` with its shape arguments replaced: mlp `in_features hidden_size
/// num_classes`; resnet `image_size num_classes`; gpt2 `seq_len vocab_size dropout`. An unknown
/// name or argument is an error.
std::variant<NetworkDescription, NetworkError> describe_preset(
    std::string_view name, const std::vector<NamedArgument>& arguments = {});

}  // namespace lockstep
