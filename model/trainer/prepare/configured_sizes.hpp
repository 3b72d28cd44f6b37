#pragma once

#include <string>
#include <vector>

#include "model/network/config_networks.hpp"

namespace lockstep {

/// What a scenario gives beside `hf`.
struct ConfiguredSizes {
  ConfiguredSize size{};
  std::string strange{};  ///< the first that cannot stand there; empty: none
};
ConfiguredSizes configured_sizes(const std::vector<NamedArgument>& given);

}  // namespace lockstep
