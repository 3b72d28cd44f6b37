#include "backend/process/environment.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace lockstep::backend {

namespace {

/// The names of the variables that one launcher sets.
struct Starter {
  const char* name;
  const char* rank;
  const char* world_size;
  const char* local_rank;
};

// In the order in which they are asked: srun also sets the names of PMI.
constexpr Starter starters[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

constexpr int64_t ranks_max = 1'000'000;

int64_t number(const std::string& name, const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw EnvironmentError(
        fmt::format("{}={} is no whole number from {} to {}; start the ranks "
                    "with lockstep exec, torchrun, mpirun or srun",
                    name, text, least, most));
  }
  return value;
}

int64_t required(const Variables& variables, const Starter& starter, const char* name,
                 int64_t least, int64_t most) {
  const auto text = variables(name);
  if (!text) {
    throw EnvironmentError(
        fmt::format("{} is set but {} is not; {} sets both", starter.rank, name, starter.name));
  }
  return number(name, *text, least, most);
}

// Dynamic ports, a different one for neighbouring jobs.
uint16_t port_of_job(int64_t job) { return static_cast<uint16_t>(49152 + job % 16000); }

void read_meeting_point(const Variables& variables, ProcessPlace& place) {
  if (const auto address = variables("MASTER_ADDR")) {
    if (address->empty()) {
      throw EnvironmentError(
          "MASTER_ADDR is empty; set it to the name or address of rank 0's host");
    }
    place.master_address = *address;
  }
  if (const auto port = variables("MASTER_PORT")) {
    place.master_port = static_cast<uint16_t>(number("MASTER_PORT", *port, 1, 65535));
  } else if (const auto job = variables("SLURM_JOB_ID")) {
    place.master_port =
        port_of_job(number("SLURM_JOB_ID", *job, 0, std::numeric_limits<int64_t>::max()));
  } else if (place.world_size > 1) {
    throw EnvironmentError(
        "MASTER_PORT is not set: the ranks do not know where to meet; set "
        "MASTER_ADDR and MASTER_PORT to a free port of rank 0's host");
  }
  place.agent_hosts_store = variables("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
}

}  // namespace

ProcessPlace place_from(const Variables& variables) {
  for (const Starter& starter : starters) {
    const auto rank = variables(starter.rank);
    if (!rank) {
      continue;
    }
    ProcessPlace place;
    place.starter = starter.name;
    place.world_size =
        static_cast<int32_t>(required(variables, starter, starter.world_size, 1, ranks_max));
    place.rank = static_cast<int32_t>(number(starter.rank, *rank, 0, place.world_size - 1));
    place.local_rank = static_cast<int32_t>(
        variables(starter.local_rank)
            ? required(variables, starter, starter.local_rank, 0, place.world_size - 1)
            : place.rank);
    read_meeting_point(variables, place);
    return place;
  }
  throw EnvironmentError(
      "nothing says which rank this is; start it with lockstep exec, or with "
      "torchrun --no-python, mpirun or srun");
}

}  // namespace lockstep::backend
