#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// How many choices of tokens fell on each expert of a layer, on one rank.
struct ExpertLoad {
  std::string layer{};  ///< its name
  std::vector<int64_t> choices{};
  int64_t dropped = 0;  ///< of these, beyond the capacity of their expert
};

}  // namespace lockstep
