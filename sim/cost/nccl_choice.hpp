#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cost/nccl_algorithm.hpp"
#include "sim/cost/nccl_settings.hpp"

namespace lockstep::sim {

/// One way in which NCCL can run a collective, with the rate and latency that its tuner counts.
struct NcclCandidate {
  const NcclAlgorithm* algorithm = nullptr;
  NcclProtocol protocol = NcclProtocol::simple;
  double latency_us = 0;
  double bandwidth_GBps = 0;  ///< bytes of the larger side by time
  int channels = 0;           ///< of the graph

  std::string name() const;  ///< "Ring LL128"
};

/// All ways that this communicator has for the function, in NCCL's order.
std::vector<NcclCandidate> nccl_candidates(const NcclCommunicator& communicator,
                                           const NcclConstants& constants,
                                           const NcclAllowed& allowed, NcclFunction function);

/// What the tuner expects of a candidate for a call of some size.
struct NcclEstimate {
  double latency_us = 0;
  double transfer_us = 0;
  double time_us() const { return latency_us + transfer_us; }
};
/// `bytes` of the larger side: the whole of what an all_gather gathers.
NcclEstimate nccl_estimate(const NcclCommunicator& communicator, const NcclCandidate& candidate,
                           NcclFunction function, int64_t bytes);

/// The candidate with the shortest time, the first of equals. Candidates are not empty.
struct NcclChoice {
  NcclCandidate candidate;
  NcclEstimate estimate;
};
NcclChoice cheapest(const NcclCommunicator& communicator,
                    const std::vector<NcclCandidate>& candidates, NcclFunction function,
                    int64_t bytes);

}  // namespace lockstep::sim
