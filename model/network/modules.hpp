#pragma once

#include <string>
#include <vector>

#include "model/network/network.hpp"

namespace lockstep {

struct NamedNetwork {
  std::string name;
  Network network;
};

/// Several models as one network, one behind the other; the layers of each begin with its name.
/// Not empty.
Network joined(std::vector<NamedNetwork> parts);

}  // namespace lockstep
