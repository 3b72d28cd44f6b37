#include "model/network/arithmetic.hpp"

#include <fmt/format.h>

namespace lockstep {

bool draws(const Layer& layer) {
  if (const auto* attention = std::get_if<AttentionArguments>(&layer.arguments)) {
    return attention->dropout > 0;
  }
  if (const auto* depth = std::get_if<StochasticDepthArguments>(&layer.arguments)) {
    return depth->p > 0;
  }
  const auto* dropout = std::get_if<DropoutArguments>(&layer.arguments);
  return dropout != nullptr && dropout->p > 0;
}

std::string why_without_arithmetic(const Layer& layer, bool training) {
  if (layer.kind == LayerKind::cost) {
    return "its cost is given, not its values";
  }
  return training && draws(layer) ? "dropout is random in training" : "";
}

bool has_reference_arithmetic(const Layer& layer, bool training) {
  return why_without_arithmetic(layer, training).empty();
}

}  // namespace lockstep
