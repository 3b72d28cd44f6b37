#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sim/cost/nccl_communicator.hpp"

namespace lockstep::sim {

/// The protocol, the collective and everything beside the algorithm that its cost depends on.
struct NcclQuery {
  const NcclCommunicator& communicator;
  const NcclConstants& constants;
  NcclFunction function;
  NcclProtocol protocol;

  size_t protocol_index() const { return static_cast<size_t>(protocol); }
  /// Messages one after the other on the critical path of a ring.
  int64_t steps() const;
  /// Of these, those between nodes.
  int64_t steps_between_nodes() const;
};

/// One algorithm of NCCL: for what it exists and what it costs.
struct NcclAlgorithm {
  std::string_view name;  ///< as NCCL_ALGO spells it
  bool (*is_available)(const NcclQuery&);
  double (*bandwidth_GBps)(const NcclQuery&);  ///< bytes of the larger side by time
  double (*latency_us)(const NcclQuery&);
  NcclGraph NcclCommunicator::*graph;
  bool has_trees = false;    ///< else rings, or what costs links as rings do
  bool has_plateau = false;  ///< over nodes its latency jumps at a size
  /// First generation whose all_reduce tree_correction slows down; nothing: none does.
  std::optional<GpuGeneration> corrected_from{};
};

/// In the order in which NCCL compares them: of equal times the first wins.
std::span<const NcclAlgorithm> nccl_algorithms();

}  // namespace lockstep::sim
