#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/core/units.hpp"

namespace lockstep {

/// A tensor of a list that may travel together with others of it.
struct FusibleTensor {
  int64_t alike = 0;  ///< only those with the same number travel together
  bool fuses = true;  ///< false: always by itself
  Bytes bytes{};
};

/// Horovod's Controller::FuseResponses (horovod/common/controller.cc): positions in the list, by
/// call. A tensor joins the call under way if it is alike and there is room below the threshold;
/// one that does not is skipped, as long as what is in the call and all that was skipped would
/// still fit together. What was skipped comes next, in its order.
std::vector<std::vector<size_t>> fuse(std::span<const FusibleTensor> tensors, Bytes threshold);

/// The threshold that Horovod works with: rounded up, so that each rank of a node may take an equal
/// part of the buffer in units of 64 elements of 8 bytes.
Bytes working_threshold(Bytes threshold, int32_t ranks_of_node);

}  // namespace lockstep
