#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/network/layer.hpp"
#include "model/strategy/local_model/tensor_ranks.hpp"

namespace lockstep {

/// Which ranks have the other parts of a replica's layers, experts and samples; without any, the
/// replica has all of them.
struct ModelDivision {
  TensorRanks layers{};
  /// Those of `layers`, unless the experts are divided among others.
  ExpertRanks experts{};
  TensorRanks positions{};             ///< of each sample
  std::vector<DType> exchanged_types;  ///< by layer, where nothing carries values

  /// Which part of a cut parameter this rank has.
  int32_t part_index(const TensorCut& cut) const {
    return cut.by_experts ? experts.index() : layers.index;
  }
  /// Of an embedding that is a part of the rows the first of them; of a layer that has a part of
  /// the positions the index of the rank among those that divide them.
  std::optional<double> place_of_part(const Layer& layer) const;
};

}  // namespace lockstep
