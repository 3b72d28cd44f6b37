#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/core/place.hpp"
#include "model/core/ranks_of_nodes.hpp"
#include "model/scenario/scenario.hpp"
#include "model/trainer/framework/strategy_choice.hpp"

namespace lockstep {

/// The launcher of a training, and how many processes it starts.
struct Launch {
  /// torchrun, horovodrun, baguarun, bagua.distributed.launch, srun, mpirun, notebook
  std::string launcher = "lightning";
  int32_t nodes = 1;
  int32_t processes_per_node = 1;     ///< the most that a node has
  RanksOfNodes processes_of_nodes{};  ///< where hosts differ; empty: all have as many
  std::vector<std::string> hosts{};   ///< by node, as the scenario names them; empty: node0, ..
  StartMethod start = StartMethod::script;  ///< how Lightning makes them where it does
  int64_t max_restarts = 0;                 ///< of torchrun
  int64_t least_nodes = 1;                  ///< of torchrun's `nnodes`
  int64_t most_nodes = 1;
  bool takes_any_nodes = false;  ///< the script reads from torchrun how many there are
  std::string rendezvous{};      ///< torchrun's --rdzv-backend; empty: it names none
  std::string endpoint{};        ///< torchrun's --rdzv-endpoint, Bagua's --master_addr; empty: none
  bool is_standalone = false;    ///< torchrun's --standalone
  int64_t master_port = 29500;   ///< of baguarun and bagua.distributed.launch
  int64_t service_port = 29501;  ///< theirs: --bagua_service_port
  bool gpus = true;
  bool joins_torch = true;  ///< torch.distributed, which asks for an address; XLA does not

  int32_t world_size() const;
  bool is_static() const { return rendezvous == "static"; }
  bool is_uneven() const { return !processes_of_nodes.empty(); }
  /// Whether the launcher itself makes one process per rank; else Lightning does.
  bool is_external() const { return launcher != "lightning" && launcher != "notebook"; }
  Place place_of(int32_t rank) const;
  int32_t processes_of(int32_t node) const;
  std::string host_of(int32_t node) const;  ///< its name
  std::string address() const;              ///< of rank 0's host, for the others
};

struct EnvironmentEntry {
  std::string name;
  std::string value;
};

/// Variables that launcher and Lightning set for a rank, in the order of the launcher's
/// documentation. Sources: Lightning's subprocess_script.py and plugins/environments, torch's
/// distributed/elastic/agent/server/local_elastic_agent.py, horovod/runner/gloo_run.py,
/// bagua/distributed/launch.py, Slurm's srun(1), Open MPI's mpirun(1).
std::vector<EnvironmentEntry> environment_of(const Launch& launch, int32_t rank);

/// The command that starts a rank, or who starts it.
std::string start_line(const Launch& launch, int32_t rank);

/// The required value of a rank variable ("LOCAL_RANK", "SLURM_PROCID", ..); nothing for others.
std::optional<std::string> expected_value(const std::string& variable, const Launch& launch,
                                          int32_t rank);

/// The value of a variable of the scenario on a rank. Throws EvaluationError.
std::string value_on(const EnvironmentVariable& variable, const Place& place);

/// A variable of the scenario that contradicts the processes that there are.
struct EnvironmentFault {
  const EnvironmentVariable* variable = nullptr;
  std::vector<int32_t> ranks;  ///< with a wrong value
  std::string message;         ///< "NODE_RANK is 1 on rank 1 (should be 0)"
};
std::vector<EnvironmentFault> environment_faults(const std::vector<EnvironmentVariable>& variables,
                                                 const Launch& launch);

/// Whether anything here depends on the variable.
bool has_meaning(const std::string& variable);

}  // namespace lockstep
