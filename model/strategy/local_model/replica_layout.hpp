#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "model/network/memory.hpp"
#include "model/network/network.hpp"
#include "model/network/output_type.hpp"

namespace lockstep {

struct TrainingPlan;

/// What follows from a network and its types alone, the same for all of its replicas. Numbers of
/// parameters and of buffers are in definition order, layer by layer.
struct ReplicaLayout {
  const Network* network = nullptr;
  ComputingTypes types;
  bool numerics = false;
  NetworkMemory memory;  ///< without layers where every tensor is an operand (numerics)
  std::vector<std::vector<size_t>> parameters_of;  ///< by layer, all that its kernels read
  std::vector<std::vector<size_t>> trainable_of;   ///< by layer
  std::vector<std::vector<size_t>> buffers_of;     ///< by layer
};

/// The plan's own where it is of its network and types as they are now, else a new one.
std::shared_ptr<const ReplicaLayout> layout_of(const TrainingPlan& plan);

}  // namespace lockstep
