#pragma once

#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/trainer/prepare/prepare.hpp"
#include "sim/build_costs.hpp"

namespace lockstep::cli {

/// The cluster that a scenario describes, with what was assumed where it says nothing.
struct Machine {
  Cluster cluster;
  sim::CollectiveAlgorithms algorithms = sim::CollectiveAlgorithms::nccl;
  sim::NcclOptions nccl{};        ///< by the scenario's `env` and `versions`
  int32_t ranks_per_node = 0;     ///< 0: as many as fit
  RanksOfNodes ranks_of_nodes{};  ///< where nodes differ; empty: ranks_per_node on each
  bool is_flat = false;           ///< ranks and a network, nothing of a machine
  std::string name;               ///< "8 x A100 SXM4 80GB on 1 node"
  std::vector<std::string> assumptions;
  std::vector<Problem> problems;  ///< empty: the machine is complete
};
Machine machine_of(const Preparation& preparation);

/// Of so many nodes, those that ranks run on.
int64_t nodes_used(const Preparation& preparation, int64_t nodes);

/// The variables of the scenario's `env` that begin with NCCL_.
std::vector<sim::NcclVariable> nccl_variables(const Scenario& scenario);

}  // namespace lockstep::cli
