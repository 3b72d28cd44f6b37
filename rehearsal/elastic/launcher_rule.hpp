#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/core/units.hpp"

namespace lockstep::cli {

/// torchrun with its arguments: an agent on every node, which starts the workers of that node.
struct ElasticLauncher {
  int64_t least_nodes = 1;
  int64_t most_nodes = 1;
  int64_t max_restarts = 0;  ///< of each agent
  int32_t processes_per_node = 1;
};

/// Where the workers of an attempt run. Nodes are those of the cluster, from 0.
struct ElasticWorld {
  std::vector<int32_t> nodes;           ///< by node rank
  std::vector<int32_t> spares;          ///< whose agents wait for a place, in their order
  std::map<int32_t, int64_t> restarts;  ///< that the agent of a node has used
  bool operator==(const ElasticWorld&) const = default;
};
/// Of a job that starts on a cluster of so many nodes.
ElasticWorld first_world(const ElasticLauncher& launcher, int64_t nodes_of_cluster);

/// What ended an attempt.
struct AttemptFailure {
  std::set<int32_t> failed;  ///< nodes whose agent sees a worker of its own fail
  std::set<int32_t> lost;    ///< nodes that are gone with their agent
};

/// What the agents do next.
struct NextAttempt {
  std::optional<ElasticWorld> world;  ///< none: the job ends
  std::string why_not;                ///< then
};
/// The rule of torchrun (torch/distributed/elastic/agent/server/api.py, _invoke_run): an agent
/// whose worker has failed uses up one of its own restarts, the others restart with it and count
/// nothing. All that are left meet again; their ranks follow the order of their names, and a spare
/// takes a place that has become free (rendezvous/dynamic_rendezvous.py).
NextAttempt after_failure(const ElasticLauncher& launcher, const ElasticWorld& world,
                          const AttemptFailure& failure);

/// How long nothing is trained between two attempts.
struct Downtime {
  Time detection{};   ///< from the failure until an agent knows of it
  Time stopping{};    ///< of the workers that are left
  Time rendezvous{};  ///< until all agents have met
  Time start{};       ///< of the new processes
  Time whole() const { return detection + stopping + rendezvous + start; }
};
/// What it depends on beside the rule.
struct DowntimeFacts {
  int64_t nodes_before = 1;
  int64_t nodes_after = 1;
  bool lost_node = false;
  bool errors_at_once =
      false;  ///< ranks that talk to one that is gone raise (Gloo); else they wait
  bool handles_sigterm = false;  ///< by a Python handler, which no waiting rank comes to run
  Time group_timeout{};          ///< of the process group: its watchdog ends ranks that wait
  Time start_time{};             ///< of a process
};
Downtime downtime_of(const ElasticLauncher& launcher, const DowntimeFacts& facts);

}  // namespace lockstep::cli
