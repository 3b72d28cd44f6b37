#include "model/strategy/local_model/model_division.hpp"

namespace lockstep {

std::optional<double> ModelDivision::place_of_part(const Layer& layer) const {
  if (layer.context) {
    return static_cast<double>(positions.index);
  }
  const auto* embedding = std::get_if<EmbeddingArguments>(&layer.arguments);
  if (embedding == nullptr || !embedding->is_part) {
    return std::nullopt;
  }
  return static_cast<double>(embedding->num_embeddings * layers.index);
}

}  // namespace lockstep
