#pragma once

#include <cstddef>
#include <vector>

#include "model/network/network.hpp"

namespace lockstep {

/// By layer of a whole network: which layers of a cut one have taken its place.
struct LayerPlaces {
  std::vector<size_t> first{};
  std::vector<size_t> last{};
  std::vector<size_t> holder{};  ///< which of them has its parameters
};

/// Gives the cut network the blocks, checkpointed segments and tied layers of the whole one, which
/// name layers by number.
void map_ranges(const Network& whole, const LayerPlaces& places, Network& cut);

}  // namespace lockstep
