#pragma once

#include <span>
#include <string_view>

namespace lockstep::cli {

/// What a layer or loss computes, and the smallest network that shows it.
struct LayerExample {
  std::string_view name;
  std::string_view meaning;    ///< "torch.nn: y = x W^T + b over the last dimension"
  std::string_view input;      ///< the shape of one sample: "[8]"
  std::string_view arguments;  ///< "{in_features: 8, out_features: 4}"; empty: none
  std::string_view before{};   ///< the layer in front of it, or of a loss, if it needs one
  std::string_view lines{};    ///< other sections
  std::string_view beside{};   ///< the layer that makes what it reads beside its input
};

/// Of every layer that a scenario may name, those that are not modelled included.
std::span<const LayerExample> layer_examples();
/// Of every loss.
std::span<const LayerExample> loss_examples();

}  // namespace lockstep::cli
