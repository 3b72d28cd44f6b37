#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/network/network.hpp"

namespace lockstep {

/// A layer or the loss gets a tensor of a different size than it takes, because layers before it
/// do not run.
struct SizeConflict {
  std::string message;
  /// torch raises an exception; otherwise it computes with sizes that this network is not built
  /// for.
  bool raises = true;
};

/// The first that raises of a forward without the layers `left_out` (ascending), else the first
/// that is not modelled. `modules`: those that run, in order; empty: all layers.
std::optional<SizeConflict> size_conflict_without(const Network& network,
                                                  const std::vector<size_t>& left_out,
                                                  const std::vector<size_t>& modules);

}  // namespace lockstep
