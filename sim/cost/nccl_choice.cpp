#include "sim/cost/nccl_choice.hpp"

#include <fmt/format.h>

#include "model/core/ensure.hpp"

namespace lockstep::sim {

namespace {

constexpr std::array<NcclProtocol, nccl_protocols> protocols = {
    NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple};

// A ring over nodes holds its latency up to a size, and then jumps.
double plateau(const NcclCommunicator& communicator, const NcclCandidate& candidate,
               NcclFunction function, int64_t bytes) {
  constexpr int64_t bytes_per_rank_and_channel = 64;
  const int64_t shares = candidate.channels * communicator.ranks;
  const bool is_beyond = communicator.nodes > 1 && function == NcclFunction::all_reduce &&
                         candidate.algorithm->has_plateau &&
                         candidate.protocol == NcclProtocol::simple &&
                         bytes / shares >= bytes_per_rank_and_channel;
  if (!is_beyond) {
    return 1;
  }
  return communicator.generation < GpuGeneration::ampere ? 1.9 : 1.4;
}

}  // namespace

std::string NcclCandidate::name() const {
  return fmt::format("{} {}", algorithm->name, name_of(protocol));
}

std::vector<NcclCandidate> nccl_candidates(const NcclCommunicator& communicator,
                                           const NcclConstants& constants,
                                           const NcclAllowed& allowed, NcclFunction function) {
  std::vector<NcclCandidate> candidates;
  const std::span<const NcclAlgorithm> algorithms = nccl_algorithms();
  for (size_t place = 0; place < algorithms.size(); ++place) {
    const NcclAlgorithm& algorithm = algorithms[place];
    for (const NcclProtocol protocol : protocols) {
      const NcclQuery query{communicator, constants, function, protocol};
      const bool is_off_by_default =
          protocol == NcclProtocol::ll128 && !communicator.allows_ll128 && !allowed.names_ll128;
      if (!allowed.algorithms[place] || !allowed.protocols[query.protocol_index()] ||
          is_off_by_default || !algorithm.is_available(query)) {
        continue;
      }
      const double bandwidth = algorithm.bandwidth_GBps(query);
      if (bandwidth > 0) {
        candidates.push_back({&algorithm, protocol, algorithm.latency_us(query), bandwidth,
                              (communicator.*algorithm.graph).channels});
      }
    }
  }
  return candidates;
}

NcclEstimate nccl_estimate(const NcclCommunicator& communicator, const NcclCandidate& candidate,
                           NcclFunction function, int64_t bytes) {
  constexpr double bytes_per_us_and_GBps = 1000;
  double bandwidth = candidate.bandwidth_GBps;
  const std::optional<GpuGeneration> from = candidate.algorithm->corrected_from;
  const bool is_corrected = from && communicator.generation >= *from &&
                            (communicator.has_x86_host || *from == GpuGeneration::volta);
  if (function == NcclFunction::all_reduce && is_corrected) {
    bandwidth *= tree_correction(candidate.protocol, bytes);
  }
  return {candidate.latency_us * plateau(communicator, candidate, function, bytes),
          static_cast<double>(bytes) / (bytes_per_us_and_GBps * bandwidth)};
}

NcclChoice cheapest(const NcclCommunicator& communicator,
                    const std::vector<NcclCandidate>& candidates, NcclFunction function,
                    int64_t bytes) {
  ensure(!candidates.empty(), "some algorithm of NCCL is available");
  NcclChoice best;
  for (const NcclCandidate& candidate : candidates) {
    const NcclEstimate estimate = nccl_estimate(communicator, candidate, function, bytes);
    if (best.candidate.algorithm == nullptr || estimate.time_us() < best.estimate.time_us()) {
      best = {candidate, estimate};
    }
  }
  return best;
}

}  // namespace lockstep::sim
