#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/core/values.hpp"

namespace lockstep {

/// Values that nobody changes; ranks of one process may hold the same.
using SharedValues = std::shared_ptr<const Values>;

/// A pure function of shared values, as one of many ranks asks for it.
struct PureCall {
  const void* function = nullptr;  ///< distinguishes it from others; outlives the run
  std::vector<SharedValues> arguments;
  /// Computes it. An error leaves as an exception.
  std::function<std::shared_ptr<const void>()> compute;
};

}  // namespace lockstep
