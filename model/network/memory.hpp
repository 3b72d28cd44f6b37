#pragma once

#include <vector>

#include "model/core/units.hpp"
#include "model/network/network.hpp"
#include "model/network/output_type.hpp"

namespace lockstep {

/// What one layer holds of a GPU's memory, beside parameters, gradients and optimizer state. Bytes
/// of one sample where nothing else is said.
struct LayerMemory {
  /// From its forward until its backward: what autograd saves. A tensor that several layers need is
  /// counted once, at the first that saves it; the network's own input is the batch, not counted.
  Bytes kept{};
  /// The same, of the forward that a checkpointed segment runs again.
  Bytes recomputed{};
  /// While its forward runs: tensors that nobody keeps but somebody still reads or just wrote.
  Bytes forward{};
  /// The same where nothing is kept for a backward.
  Bytes evaluated{};
  /// While its backward runs: gradients of activations, those that wait on a skip path included.
  Bytes backward{};
  /// When its backward is done: of these, what the layers before it read.
  Bytes after_backward{};
  /// Whole, not of one sample: copies of its weights in the narrow type, which autocast makes.
  Bytes weight_copies{};
  /// The copies outlive the forward, because the input's gradient reads them.
  bool keeps_weight_copies = false;
};

struct NetworkMemory {
  std::vector<LayerMemory> layers;
  std::vector<LayerMemory> losses;  ///< by module; of a network without modules one
};

/// What training of the network holds in these types, by the rules of PyTorch's autograd and, under
/// mixed precision, of autocast. The network is one that account() has been through.
NetworkMemory memory_of(const Network& network, const ComputingTypes& types);

}  // namespace lockstep
