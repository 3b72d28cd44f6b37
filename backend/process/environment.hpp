#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

namespace lockstep::backend {

/// The place of a process among those that were started together, and where they meet.
struct ProcessPlace {
  int32_t rank = 0;
  int32_t local_rank = 0;
  int32_t world_size = 1;
  std::string master_address = "127.0.0.1";
  uint16_t master_port = 0;
  bool agent_hosts_store = false;  ///< torchrun's agent listens there already
  std::string starter;             ///< "torchrun", "mpirun", "srun": whose variables said so
};

/// The variables contradict each other, or cannot be read.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The value of a variable; nothing where it is not set.
using Variables = std::function<std::optional<std::string>(const std::string&)>;

/// Reads RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT (torchrun); else the rank and
/// the size by Open MPI (OMPI_COMM_WORLD_*), MPICH and Hydra (PMI_*) or Slurm (SLURM_PROCID ..).
/// The port of a Slurm job without MASTER_PORT derives from its number. Throws EnvironmentError,
/// also when no starter's variables are there.
ProcessPlace place_from(const Variables& variables);

}  // namespace lockstep::backend
