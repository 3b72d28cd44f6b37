#include "sim/cost/collective_price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::sim {

namespace {

PathClass path_between_nodes(const Cluster& cluster, const NcclSettings& settings) {
  switch (cluster.network.fabric) {
    case Fabric::infiniband:
    case Fabric::roce:
      return !settings.has_infiniband            ? PathClass::tcp
             : has_gpu_direct(cluster, settings) ? PathClass::rdma
                                                 : PathClass::host_memory;
    case Fabric::efa: return PathClass::efa;
    case Fabric::tcpx:
    case Fabric::tcpxo: return PathClass::tcpx;
    case Fabric::tcp: return PathClass::tcp;
  }
  return PathClass::tcp;
}

PathClass path_of(const NcclPricing::Setup& setup, const NcclCommunicator& communicator) {
  if (communicator.nodes > 1) {
    return path_between_nodes(setup.cluster, setup.settings);
  }
  if (communicator.intra == Medium::nvlink) {
    return PathClass::nvlink;
  }
  if (!goes_through_host(setup.cluster, setup.settings)) {
    return PathClass::pcie;
  }
  return setup.settings.has_shared_memory ? PathClass::host_memory
                                          : path_between_nodes(setup.cluster, setup.settings);
}

CorrectionTerm launch_term(GpuGeneration generation) {
  switch (generation) {
    case GpuGeneration::volta: return CorrectionTerm::launch_volta;
    case GpuGeneration::ampere: return CorrectionTerm::launch_ampere;
    case GpuGeneration::hopper: return CorrectionTerm::launch_hopper;
    case GpuGeneration::blackwell: return CorrectionTerm::launch_blackwell;
  }
  return CorrectionTerm::launch_hopper;
}

CorrectionTerm efficiency_term(PathClass path, GpuGeneration generation) {
  switch (path) {
    case PathClass::nvlink:
      return generation == GpuGeneration::blackwell ? CorrectionTerm::efficiency_nvlink_blackwell
                                                    : CorrectionTerm::efficiency_nvlink;
    case PathClass::pcie: return CorrectionTerm::efficiency_pcie;
    case PathClass::host_memory: return CorrectionTerm::efficiency_host_memory;
    case PathClass::rdma: return CorrectionTerm::efficiency_rdma;
    case PathClass::efa: return CorrectionTerm::efficiency_efa;
    case PathClass::tcpx: return CorrectionTerm::efficiency_tcpx;
    case PathClass::tcp: return CorrectionTerm::efficiency_tcp;
  }
  return CorrectionTerm::efficiency_tcp;
}

/// NCCL's own function for a call, and the bytes that its tuner counts.
struct TunedCall {
  NcclFunction function = NcclFunction::all_reduce;
  int64_t bytes = 0;
};
std::optional<TunedCall> tuned_call(OpKind kind, int64_t bytes, int64_t ranks) {
  constexpr int64_t barrier_bytes = 4;
  constexpr int64_t new_group_bytes = 8;
  switch (kind) {
    case OpKind::all_reduce: return TunedCall{NcclFunction::all_reduce, bytes};
    case OpKind::barrier: return TunedCall{NcclFunction::all_reduce, barrier_bytes};
    case OpKind::all_gather: return TunedCall{NcclFunction::all_gather, bytes * ranks};
    case OpKind::new_group: return TunedCall{NcclFunction::all_gather, new_group_bytes * ranks};
    case OpKind::reduce_scatter: return TunedCall{NcclFunction::reduce_scatter, bytes};
    case OpKind::broadcast: return TunedCall{NcclFunction::broadcast, bytes};
    case OpKind::reduce: return TunedCall{NcclFunction::reduce, bytes};
    default: return std::nullopt;
  }
}

// Lists that leave nothing are passed over, algorithms first: NCCL's collectives other than
// all_reduce fall back to rings in the same way.
std::vector<NcclCandidate> candidates_or_all(const NcclCommunicator& communicator,
                                             const NcclConstants& constants, NcclAllowed allowed,
                                             NcclFunction function) {
  std::vector<NcclCandidate> candidates =
      nccl_candidates(communicator, constants, allowed, function);
  if (candidates.empty()) {
    allowed.algorithms = NcclAllowed().algorithms;
    candidates = nccl_candidates(communicator, constants, allowed, function);
  }
  return candidates.empty() ? nccl_candidates(communicator, constants, {}, function) : candidates;
}

}  // namespace

std::string_view name_of(PathClass path) {
  switch (path) {
    case PathClass::nvlink: return "NVLink";
    case PathClass::pcie: return "PCIe";
    case PathClass::host_memory: return "host memory";
    case PathClass::rdma: return "InfiniBand or RoCE";
    case PathClass::efa: return "EFA";
    case PathClass::tcpx: return "GPUDirect-TCPX";
    case PathClass::tcp: return "TCP";
  }
  return "?";
}

NcclPricing::NcclPricing(const Setup& setup)
    : communicator_(nccl_communicator(setup.cluster, setup.members, setup.settings, setup.version)),
      settings_(setup.settings),
      correction_(setup.correction),
      path_(path_of(setup, communicator_)),
      nic_GBps_(static_cast<double>(setup.cluster.network.bandwidth.count()) * 1e-9 *
                setup.cluster.node.nics * static_cast<double>(communicator_.ranks_per_node()) /
                setup.cluster.node.devices),
      sockets_of_connection_(
          setup.settings.socket_threads.value_or(setup.cluster.network.socket_threads) *
          setup.settings.sockets_per_thread.value_or(setup.cluster.network.sockets_per_thread)),
      gpus_per_process_(setup.gpus_per_process) {
  const NcclConstants constants = nccl_constants(setup.version);
  for (size_t function = 0; function < candidates_.size(); ++function) {
    candidates_[function] =
        candidates_or_all(communicator_, constants, setup.settings.allowed[function],
                          static_cast<NcclFunction>(function));
  }
}

CollectivePrice NcclPricing::price(OpKind kind, Bytes bytes) const {
  if (communicator_.ranks < 2) {
    return {};
  }
  const auto call = tuned_call(kind, bytes.count(), communicator_.ranks);
  return call ? tuned(call->function, call->bytes) : messages(kind, bytes.count());
}

// Two blocks of threads run each channel of a graph; a limit on blocks limits the rate.
double NcclPricing::limited_by_channels(const NcclCandidate& candidate) const {
  constexpr int blocks_max = 64;
  const int blocks = std::min(2 * candidate.channels, blocks_max);
  const int allowed = std::max(settings_.channels_max.value_or(blocks_max),
                               settings_.channels_min.value_or(1));  // the lower limit wins
  return allowed < blocks ? static_cast<double>(blocks) / allowed : 1;
}

// A channel between nodes has one connection, and one core of the host copies for each of its
// sockets. The efficiency of TCP is counted elsewhere: this is what goes beyond it.
double NcclPricing::limited_by_sockets(const NcclGraph& graph) const {
  if (path_ != PathClass::tcp || communicator_.nodes < 2) {
    return 1;
  }
  const double of_network = correction_.of(CorrectionTerm::efficiency_tcp) * graph.inter;
  const double of_sockets = correction_.of(CorrectionTerm::socket_rate) * sockets_of_connection_;
  return std::max(1.0, of_network / of_sockets);
}

CollectivePrice NcclPricing::tuned(NcclFunction function, int64_t bytes) const {
  const auto& candidates = candidates_[static_cast<size_t>(function)];
  NcclChoice choice = cheapest(communicator_, candidates, function, bytes);
  choice.estimate.transfer_us *= limited_by_channels(choice.candidate);
  const NcclAlgorithm& algorithm = *choice.candidate.algorithm;
  choice.estimate.transfer_us *= limited_by_sockets(communicator_.*algorithm.graph);
  CollectivePrice price = corrected(choice.estimate, algorithm.graph == &NcclCommunicator::nvls);
  price.way = choice.candidate.name();
  price.channels = choice.candidate.channels;
  price.goes_by_trees = algorithm.has_trees;
  return price;
}

// Sends and receives in one group: a message for each peer, and whatever is slower of the rate
// inside of a node and the rate between nodes.
CollectivePrice NcclPricing::messages(OpKind kind, int64_t bytes) const {
  constexpr double bytes_per_us_and_GBps = 1000;
  constexpr double base_us = 6.6;
  const auto ranks = static_cast<double>(communicator_.ranks);
  const auto local = static_cast<double>(communicator_.ranks_per_node());
  const bool is_over_nvlink = communicator_.intra == Medium::nvlink;
  const double step_within_us = is_over_nvlink ? 0.6 : 1.0;
  constexpr double step_between_us = 2.7;
  const NcclGraph& graph = communicator_.ring;
  const bool is_all_to_all = kind == OpKind::all_to_all;
  const double part = static_cast<double>(bytes) / (is_all_to_all ? ranks : 1);
  const double within_us =
      part * (local - 1) / (bytes_per_us_and_GBps * graph.channels * graph.intra);
  // All GPUs of a node send at once; to or from one root, one of them does.
  const double senders = is_all_to_all ? local : 1;
  const double nic = is_all_to_all ? nic_GBps_ : nic_GBps_ / local;
  const double between_us = communicator_.nodes > 1
                                ? part * (ranks - local) * senders / (bytes_per_us_and_GBps * nic)
                                : 0;
  const double latency_us = base_us + (local - 1) * step_within_us +
                            (ranks - local) * step_between_us +
                            (communicator_.nodes > 1 ? communicator_.nic_latency_us : 0);
  CollectivePrice price = corrected({latency_us, std::max(within_us, between_us)}, false);
  price.way = "point to point";
  price.channels = graph.channels;
  return price;
}

CollectivePrice NcclPricing::corrected(const NcclEstimate& estimate, bool is_nvls) const {
  using enum CorrectionTerm;
  const double launch =
      correction_.of(launch_term(communicator_.generation)) +
      correction_.of(shared_process) * static_cast<double>(gpus_per_process_ - 1) +
      (path_ == PathClass::tcpx ? correction_.of(latency_tcpx) : 0);
  const double factor = correction_.of(communicator_.nodes > 1 ? latency_between : latency_within);
  const double transfer_us =
      estimate.transfer_us / correction_.of(efficiency_term(path_, communicator_.generation));
  const double filling = correction_.of(is_nvls ? pipeline_nvls : pipeline) *
                         std::sqrt(estimate.latency_us * transfer_us);
  CollectivePrice price;
  price.fixed_us = launch + factor * estimate.latency_us + filling;
  price.transfer_us = transfer_us;
  return price;
}

std::vector<std::string> NcclPricing::extrapolations() const {
  // Of the tables in data/nccl-tests.
  constexpr int64_t most_ranks = 128;
  constexpr int64_t most_nodes = 16;
  std::vector<std::string> sentences;
  if (communicator_.ranks > most_ranks || communicator_.nodes > most_nodes) {
    sentences.push_back(fmt::format("{} ranks on {} nodes: no measurement has more than {} on {}",
                                    communicator_.ranks, communicator_.nodes, most_ranks,
                                    most_nodes));
  }
  const CorrectionTerm term = efficiency_term(path_, communicator_.generation);
  for (const CorrectionRow& row : correction_rows()) {
    if (row.term == term && row.sources == 0) {
      sentences.push_back(fmt::format("{}: no measurement, the efficiency {:g} is assumed",
                                      name_of(path_), row.fitted));
    } else if (row.term == term && row.sources == 1) {
      sentences.push_back(fmt::format("{}: measured by one source alone", name_of(path_)));
    }
  }
  return sentences;
}

Bytes larger_side(OpKind kind, Bytes bytes, int64_t ranks) {
  const bool has_parts =
      kind == OpKind::all_gather || kind == OpKind::gather || kind == OpKind::scatter;
  return has_parts ? bytes * ranks : bytes;
}

double bus_factor(OpKind kind, int64_t ranks) {
  const auto count = static_cast<double>(ranks);
  switch (kind) {
    case OpKind::all_reduce: return 2 * (count - 1) / count;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
    case OpKind::gather:
    case OpKind::scatter: return (count - 1) / count;
    default: return 1;
  }
}

}  // namespace lockstep::sim
