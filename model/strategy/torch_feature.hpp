#pragma once

#include <string>

#include "model/core/version.hpp"

namespace lockstep {

/// What torch has from a release on.
struct TorchFeature {
  Version since;
  std::string name;      ///< "DualPipeV"
  std::string argument;  ///< that asks for it; empty: the strategy itself
};

}  // namespace lockstep
