// Sections of ncclTopoTuneModel (NVIDIA/nccl, src/graph/tuning.cc), one algorithm after the other.
#include "sim/cost/nccl_algorithm.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace lockstep::sim {

int64_t NcclQuery::steps() const {
  const int64_t others = communicator.ranks - 1;
  switch (function) {
    case NcclFunction::all_reduce: return 2 * others;
    case NcclFunction::all_gather:
    case NcclFunction::reduce_scatter: return others;
    default: return communicator.ranks;
  }
}

int64_t NcclQuery::steps_between_nodes() const {
  const int64_t others = communicator.nodes - 1;
  return function == NcclFunction::all_reduce ? 2 * others : others;
}

namespace {

constexpr double simple_factor_of_overhead = 3;

double floor_log2(int64_t count) {
  return static_cast<double>(std::bit_width(static_cast<uint64_t>(count)) - 1);
}

bool is_simple(const NcclQuery& query) { return query.protocol == NcclProtocol::simple; }
bool is_all_reduce(const NcclQuery& query) { return query.function == NcclFunction::all_reduce; }
bool is_gather_or_scatter(const NcclQuery& query) {
  return query.function == NcclFunction::all_gather ||
         query.function == NcclFunction::reduce_scatter;
}

double cap_of(const NcclQuery& query, const PerGeneration& caps) {
  return caps[static_cast<size_t>(query.communicator.generation)][query.communicator.nodes_index()];
}

// On several nodes LL is bounded by how the CPU keeps up, whatever the GPU.
double ll_cap(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  if (communicator.nodes == 1) {
    return cap_of(query, query.constants.ll_cap);
  }
  const auto row =
      static_cast<size_t>(communicator.has_amd_host ? GpuGeneration::ampere : GpuGeneration::volta);
  return query.constants.ll_cap[row][communicator.nodes_index()];
}

double channel_rate(const NcclQuery& query, const NcclGraph& graph) {
  return query.communicator.nodes <= 2 ? graph.intra : graph.inter;
}

// Of the rate on a link the rate of the call: a ring moves every byte over `steps` links of n.
double of_bus(const NcclQuery& query, double bus_GBps) {
  return bus_GBps * static_cast<double>(query.communicator.ranks) /
         static_cast<double>(query.steps());
}

double step_within(const NcclQuery& query, const NcclLatencies& latencies) {
  return latencies.step[static_cast<size_t>(query.communicator.intra)][query.protocol_index()];
}

// A single GPU of a node sends and receives at the same time, which takes as long as in a tree.
double step_between(const NcclQuery& query, const NcclLatencies& latencies) {
  const NcclCommunicator& communicator = query.communicator;
  const NcclLatencies& rows = communicator.ranks_per_node() == 1 ? query.constants.tree : latencies;
  const double flushes = is_simple(query) ? 2 : 1;
  return rows.step[static_cast<size_t>(Medium::network)][query.protocol_index()] +
         communicator.nic_latency_us * flushes;
}

// ---- ring ----

bool ring_is_available(const NcclQuery& query) { return query.communicator.ring.channels > 0; }

double ring_bandwidth(const NcclQuery& query) {
  const NcclGraph& graph = query.communicator.ring;
  const double bus = graph.channels * channel_rate(query, graph);
  switch (query.protocol) {
    case NcclProtocol::ll: return of_bus(query, std::min(ll_cap(query), 0.5 * bus));
    case NcclProtocol::ll128:
      return of_bus(query, std::min(0.92 * bus, graph.channels *
                                                    cap_of(query, query.constants.ring_ll128_cap)));
    case NcclProtocol::simple: return of_bus(query, bus);
  }
  return 0;
}

double ring_latency(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  const NcclLatencies& latencies = query.constants.ring;
  const double base = latencies.base[query.protocol_index()];
  const bool is_one_node = communicator.nodes == 1;
  if (!is_all_reduce(query) && !is_gather_or_scatter(query)) {
    const Medium slowest = is_one_node ? communicator.intra : Medium::network;
    const bool is_chunked = !communicator.same_channels && is_simple(query);
    const NcclLatencies& rows = is_chunked ? query.constants.tree : latencies;
    const double step = rows.step[static_cast<size_t>(slowest)][query.protocol_index()];
    return base + step * (communicator.same_channels ? 1.0 : static_cast<double>(query.steps()));
  }
  const double overhead = is_one_node ? 0
                                      : communicator.network_overhead_us *
                                            (is_simple(query) ? simple_factor_of_overhead : 1);
  const auto between = is_one_node ? 0.0 : static_cast<double>(query.steps_between_nodes());
  const double within = static_cast<double>(query.steps()) - between;
  return base + within * std::max(step_within(query, latencies), overhead) +
         between * step_between(query, latencies);
}

// ---- tree ----

bool tree_is_available(const NcclQuery& query) {
  return is_all_reduce(query) && query.communicator.tree.channels > 0;
}

double tree_bandwidth(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  const NcclGraph& graph = communicator.tree;
  const double channels = graph.channels;
  double bus = std::min(0.92 * channels * channel_rate(query, graph),
                        channels * cap_of(query, query.constants.tree_simple_cap));
  if (query.protocol == NcclProtocol::ll) {
    bus = std::min(bus / 3.8, ll_cap(query));
  } else if (query.protocol == NcclProtocol::ll128) {
    const double payload = communicator.nodes == 1 ? 7.0 / 9 : 120.0 / 128;
    bus = std::min(bus * payload, channels * cap_of(query, query.constants.tree_ll128_cap));
  }
  return bus * 0.5 * (communicator.tree_meets_network_once ? 0.85 : 1);
}

double tree_latency(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  const NcclLatencies& latencies = query.constants.tree;
  const auto within = static_cast<double>(communicator.ranks_per_node() - 1);
  return latencies.base[query.protocol_index()] +
         2 * (within * step_within(query, latencies) +
              floor_log2(communicator.nodes) * step_between(query, latencies));
}

// ---- NVLS: the NVLink switches add up ----

// Of one channel; all but the last of a node's GPUs are heads of others.
double nvls_channel_rate(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  const double channels = communicator.nvls.channels;
  const double efficiency =
      query.constants.nvls_efficiency[static_cast<size_t>(communicator.generation)];
  const double rate = communicator.nvls.intra * efficiency * (channels - 1) / channels;
  if (is_all_reduce(query)) {
    return 2 * rate;
  }
  const auto local = static_cast<double>(communicator.ranks_per_node());
  return rate * (local - 1) / local;
}

bool has_nvls(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  return is_simple(query) && communicator.nvls.channels >= 2 &&
         query.constants.nvls_efficiency[static_cast<size_t>(communicator.generation)] > 0;
}

bool nvls_is_available(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  const bool is_function = is_all_reduce(query) || is_gather_or_scatter(query);
  const bool reaches_all =
      communicator.nodes == 1 ||
      (communicator.has_sharp &&
       (is_all_reduce(query) || communicator.nvls.channels >= communicator.ranks_per_node()));
  return is_function && has_nvls(query) && reaches_all;
}

double nvls_bandwidth(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  const double rate = nvls_channel_rate(query);
  const double channel = communicator.nodes == 1 ? rate : std::min(rate, communicator.nvls.inter);
  const double bus = communicator.nvls.channels * channel;
  return is_all_reduce(query) ? of_bus(query, bus) : bus;
}

double nvls_latency(const NcclQuery& query) {
  const NcclLatencies& latencies = query.constants.nvls;
  const double within = latencies.base[query.protocol_index()] + step_within(query, latencies);
  return query.communicator.nodes == 1 ? within : within + step_between(query, latencies);
}

bool nvls_tree_is_available(const NcclQuery& query) {
  return is_all_reduce(query) && has_nvls(query) && query.communicator.nodes > 1;
}

double nvls_tree_bandwidth(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  // Two nodes exchange halves in both directions at once.
  const double between = communicator.nvls.inter * (communicator.nodes <= 2 ? 2 : 1);
  const double channel =
      std::min({nvls_channel_rate(query), between, cap_of(query, query.constants.nvls_tree_cap)});
  return of_bus(query, communicator.nvls.channels * channel);
}

double nvls_tree_latency(const NcclQuery& query) {
  const NcclLatencies& latencies = query.constants.nvls_tree;
  return latencies.base[query.protocol_index()] + step_within(query, latencies) +
         2 * floor_log2(query.communicator.nodes) * step_between(query, latencies);
}

// ---- CollNet: the network's switches add up (SHARP) ----

bool has_collnet(const NcclQuery& query) {
  return is_simple(query) && query.communicator.nodes > 1 && query.communicator.has_sharp;
}

bool collnet_chain_is_available(const NcclQuery& query) {
  return is_all_reduce(query) && has_collnet(query) &&
         query.communicator.collnet_chain.channels > 0;
}

double collnet_chain_bandwidth(const NcclQuery& query) {
  const NcclGraph& graph = query.communicator.collnet_chain;
  return 0.5 * graph.channels * graph.intra;
}

double collnet_chain_latency(const NcclQuery& query) {
  const NcclLatencies& latencies = query.constants.collnet_chain;
  const auto within = static_cast<double>(query.communicator.ranks_per_node() - 1);
  return latencies.base[query.protocol_index()] + 2 * within * step_within(query, latencies) +
         step_between(query, latencies);
}

bool collnet_direct_is_available(const NcclQuery& query) {
  constexpr int64_t gpus_max = 8;
  const NcclCommunicator& communicator = query.communicator;
  const bool has_heads = communicator.collnet_direct.channels >= communicator.ranks_per_node();
  return has_collnet(query) && communicator.has_nvswitch &&
         communicator.ranks_per_node() <= gpus_max && communicator.collnet_direct.channels > 0 &&
         (is_all_reduce(query) || (is_gather_or_scatter(query) && has_heads));
}

double collnet_direct_bandwidth(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  const NcclGraph& graph = communicator.collnet_direct;
  const auto local = static_cast<double>(communicator.ranks_per_node());
  if (!is_all_reduce(query)) {
    return local * std::min(graph.intra, 0.9 * graph.inter);
  }
  const double per_head = local / graph.channels;
  const double newer = communicator.generation >= GpuGeneration::hopper ? 0.85 : 1;
  return 0.5 * newer * graph.channels * graph.intra / (per_head - (per_head - 1) / 2);
}

double collnet_direct_latency(const NcclQuery& query) {
  const NcclLatencies& latencies = query.constants.collnet_direct;
  const auto others = static_cast<double>(query.communicator.ranks_per_node() - 1);
  return latencies.base[query.protocol_index()] +
         2 * (std::min(1.0, others) * step_within(query, latencies) + 0.4 * others) +
         step_between(query, latencies);
}

// ---- PAT: parallel aggregated trees ----

bool pat_is_available(const NcclQuery& query) {
  const NcclCommunicator& communicator = query.communicator;
  return is_gather_or_scatter(query) && is_simple(query) && communicator.nodes > 1 &&
         communicator.ranks_per_node() == 1 && communicator.ring.channels > 0 &&
         communicator.version >= NcclVersion{2, 23};
}

double pat_bandwidth(const NcclQuery& query) {
  const NcclGraph& graph = query.communicator.ring;
  return 0.75 * graph.channels * channel_rate(query, graph);
}

double pat_latency(const NcclQuery& query) {
  const NcclLatencies& latencies = query.constants.pat;
  return latencies.base[query.protocol_index()] +
         floor_log2(query.communicator.nodes) * step_between(query, latencies) / 3.5 +
         2.8 * static_cast<double>(query.communicator.ranks);
}

}  // namespace

std::span<const NcclAlgorithm> nccl_algorithms() {
  static constexpr auto algorithms = std::to_array<NcclAlgorithm>({
      {.name = "Tree",
       .is_available = tree_is_available,
       .bandwidth_GBps = tree_bandwidth,
       .latency_us = tree_latency,
       .graph = &NcclCommunicator::tree,
       .has_trees = true,
       .corrected_from = GpuGeneration::volta},
      {.name = "Ring",
       .is_available = ring_is_available,
       .bandwidth_GBps = ring_bandwidth,
       .latency_us = ring_latency,
       .graph = &NcclCommunicator::ring,
       .has_plateau = true},
      {.name = "CollnetDirect",
       .is_available = collnet_direct_is_available,
       .bandwidth_GBps = collnet_direct_bandwidth,
       .latency_us = collnet_direct_latency,
       .graph = &NcclCommunicator::collnet_direct},
      {.name = "CollnetChain",
       .is_available = collnet_chain_is_available,
       .bandwidth_GBps = collnet_chain_bandwidth,
       .latency_us = collnet_chain_latency,
       .graph = &NcclCommunicator::collnet_chain},
      {.name = "NVLS",
       .is_available = nvls_is_available,
       .bandwidth_GBps = nvls_bandwidth,
       .latency_us = nvls_latency,
       .graph = &NcclCommunicator::nvls},
      {.name = "NVLSTree",
       .is_available = nvls_tree_is_available,
       .bandwidth_GBps = nvls_tree_bandwidth,
       .latency_us = nvls_tree_latency,
       .graph = &NcclCommunicator::nvls,
       .has_trees = true,
       .corrected_from = GpuGeneration::blackwell},
      {.name = "PAT",
       .is_available = pat_is_available,
       .bandwidth_GBps = pat_bandwidth,
       .latency_us = pat_latency,
       .graph = &NcclCommunicator::ring},
  });
  return algorithms;
}

}  // namespace lockstep::sim
