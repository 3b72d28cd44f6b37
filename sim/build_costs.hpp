#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "sim/cost.hpp"
#include "sim/ici_cost.hpp"
#include "sim/measured_cost.hpp"
#include "sim/nccl_cost.hpp"
#include "sim/roofline_cost.hpp"
#include "sim/staged_cost.hpp"
#include "sim/topology_cost.hpp"

namespace lockstep::sim {

/// How a run is placed on its cluster.
struct CostOptions {
  int32_t world_size = 1;
  int32_t ranks_per_node = 0;     ///< 0: as many as fit
  RanksOfNodes ranks_of_nodes{};  ///< where nodes differ; empty: ranks_per_node on each
  int32_t devices_per_rank = 1;
  /// Of ranks of which one runs for all; null: every rank runs.
  std::shared_ptr<const RankClasses> classes{};
  bool folds_links = true;  ///< links of nodes that are alike may be one
  bool on_gpus = true;      ///< tensors live there, if the cluster has any
  CollectiveAlgorithms algorithms = CollectiveAlgorithms::nccl;
  NcclOptions nccl{};
  std::vector<Straggler> stragglers{};
  const Calibration* calibration = nullptr;  ///< null: data sheets alone; outlives the costs
  const Network* network = nullptr;          ///< of layer kernels; outlives the costs
  RangeEnd end = RangeEnd::nominal;          ///< of a calibrated prediction
};

/// Inputs of a simulation of one cluster, and the sources of its figures.
struct Costs {
  std::unique_ptr<ComputeCost> compute;
  SlowedComputeCost* slowed = nullptr;  ///< `compute`, where it has stragglers
  std::unique_ptr<TopologyCommunicationCost> communication;
  /// In front of `communication`, where NCCL runs collectives between GPUs.
  std::unique_ptr<NcclCommunicationCost> nccl;
  /// In front of `communication`, where XLA runs collectives between TPU chips.
  std::unique_ptr<IciCommunicationCost> ici;
  /// In front of `communication`, where Gloo communicates tensors on GPUs.
  std::unique_ptr<StagedCommunicationCost> staged;
  /// In front of `compute` and `communication`, where there is a calibration.
  const MeasuredComputeCost* measured_compute = nullptr;
  std::unique_ptr<MeasuredCommunicationCost> measured_communication;
  /// Null: no cost depends on where a rank is in its program.
  PositionObserver* observer() const {
    return slowed != nullptr && slowed->observes_positions() ? slowed : nullptr;
  }
  /// The cost model of communication.
  CommunicationCost& pricing() {
    if (measured_communication) {
      return *measured_communication;
    }
    if (nccl) {
      return *nccl;
    }
    if (ici) {
      return *ici;
    }
    return staged ? static_cast<CommunicationCost&>(*staged) : *communication;
  }
  Time launch_overhead{};
  int32_t ranks_on_node = 1;       ///< the most that share a host
  Bytes device_memory{};           ///< of each device
  std::vector<std::string> basis;  ///< a sentence each, for the user
};

/// Either costs, or why there are none.
struct CostsResult {
  Costs costs;
  std::vector<ClusterError> errors;  ///< empty = the costs are complete
};
CostsResult build_costs(const Cluster& cluster, const CostOptions& options);

/// One rank's share of its node's CPUs: cores and memory bandwidth, by the `cpu` preset. What runs
/// in streams of host_device (offloaded optimizers) is priced by it.
DeviceModel host_share(const NodeModel& node, int32_t ranks_per_node);

}  // namespace lockstep::sim
