#include "model/trainer/prepare/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "model/core/random.hpp"
#include "model/expression/arithmetic.hpp"
#include "model/expression/evaluate.hpp"
#include "model/user_program/rank_names.hpp"

namespace lockstep {

namespace {

using Entries = std::vector<EnvironmentEntry>;

/// torch's default for a rendezvous; Lightning asks the system for a free one on a single node.
constexpr const char* torch_port = "29500";
constexpr const char* free_port = "(free, chosen at the start)";
/// Slurm numbers jobs; the last four digits choose Lightning's port: 15000 + 1000.
constexpr const char* assumed_job = "1000";
constexpr const char* port_of_job = "16000";
constexpr int64_t most_port = 65535;
constexpr size_t most_told_ranks = 3;

std::string digits_of(int64_t number) { return std::to_string(number); }

int32_t nodes_of(const Place& place) {
  return (place.world_size + place.local_world_size - 1) / place.local_world_size;
}

/// A variable that gives a rank its place.
struct RankVariable {
  const char* name;
  int64_t (*value)(const Place&);
};

int64_t rank_of(const Place& place) { return place.rank.value; }
int64_t world_size_of(const Place& place) { return place.world_size; }
int64_t local_rank_of(const Place& place) { return place.local_rank; }
int64_t local_size_of(const Place& place) { return place.local_world_size; }
int64_t node_of(const Place& place) { return place.node; }
int64_t node_count_of(const Place& place) { return nodes_of(place); }

constexpr auto rank_variables = std::to_array<RankVariable>({
    {"RANK", rank_of},
    {"LOCAL_RANK", local_rank_of},
    {"NODE_RANK", node_of},
    {"GROUP_RANK", node_of},
    {"ROLE_RANK", rank_of},
    {"WORLD_SIZE", world_size_of},
    {"LOCAL_WORLD_SIZE", local_size_of},
    {"GROUP_WORLD_SIZE", node_count_of},
    {"ROLE_WORLD_SIZE", world_size_of},
    {"SLURM_PROCID", rank_of},
    {"SLURM_LOCALID", local_rank_of},
    {"SLURM_NODEID", node_of},
    {"SLURM_NTASKS", world_size_of},
    {"SLURM_NTASKS_PER_NODE", local_size_of},
    {"SLURM_NNODES", node_count_of},
    {"OMPI_COMM_WORLD_RANK", rank_of},
    {"OMPI_COMM_WORLD_SIZE", world_size_of},
    {"OMPI_COMM_WORLD_LOCAL_RANK", local_rank_of},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size_of},
    {"OMPI_COMM_WORLD_NODE_RANK", local_rank_of},
    {"HOROVOD_RANK", rank_of},
    {"HOROVOD_SIZE", world_size_of},
    {"HOROVOD_LOCAL_RANK", local_rank_of},
    {"HOROVOD_LOCAL_SIZE", local_size_of},
    {"HOROVOD_CROSS_RANK", node_of},
    {"HOROVOD_CROSS_SIZE", node_count_of},
});

void add_of_rank(const Place& place, std::initializer_list<const char*> variables, Entries& to) {
  for (const char* name : variables) {
    to.push_back({name, *expected_value(name, place)});
  }
}

std::string host(const Launch& launch, int64_t node) {
  return launch.nodes == 1 ? "localhost" : fmt::format("node{}", node);
}

std::string hosts(const Launch& launch, bool slots) {
  std::string text;
  for (int32_t node = 0; node < launch.nodes; ++node) {
    text += (node == 0 ? "" : ",") + host(launch, node);
    text += slots ? fmt::format(":{}", launch.processes_per_node) : "";
  }
  return text;
}

std::string address(const Launch& launch) {
  return launch.nodes == 1 ? "127.0.0.1" : host(launch, 0);
}

Entries of_torchrun(const Launch& launch, const Place& place) {
  Entries entries;
  add_of_rank(place,
              {"LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE",
               "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"},
              entries);
  entries.push_back({"ROLE_NAME", "default"});
  entries.push_back({"MASTER_ADDR", address(launch)});
  entries.push_back({"MASTER_PORT", torch_port});
  entries.push_back({"TORCHELASTIC_RESTART_COUNT", digits_of(place.attempt)});
  entries.push_back({"TORCHELASTIC_MAX_RESTARTS", digits_of(launch.max_restarts)});
  entries.push_back({"TORCHELASTIC_RUN_ID", "none"});
  if (launch.processes_per_node > 1) {
    entries.push_back({"OMP_NUM_THREADS", "1"});
  }
  return entries;
}

Entries of_horovodrun(const Launch& launch, const Place& place) {
  Entries entries = {{"HOROVOD_HOSTNAME", host(launch, place.node)}};
  add_of_rank(place,
              {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
               "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"},
              entries);
  entries.push_back({"HOROVOD_CONTROLLER", "gloo"});
  entries.push_back({"HOROVOD_CPU_OPERATIONS", "gloo"});
  entries.push_back({"HOROVOD_GLOO_RENDEZVOUS_ADDR", address(launch)});
  return entries;
}

Entries of_baguarun(const Launch& launch, const Place& place) {
  Entries entries;
  add_of_rank(place, {"RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
              entries);
  entries.push_back({"MASTER_ADDR", address(launch)});
  entries.push_back({"MASTER_PORT", torch_port});
  entries.push_back({"BAGUA_SERVICE_PORT", "29501"});
  return entries;
}

// Lightning takes MASTER_ADDR from the node list and MASTER_PORT from the job's number.
Entries of_srun(const Launch& launch, const Place& place) {
  Entries entries = {{"SLURM_JOB_ID", assumed_job}, {"SLURM_NODELIST", hosts(launch, false)}};
  add_of_rank(place,
              {"SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_NNODES", "SLURM_PROCID",
               "SLURM_LOCALID", "SLURM_NODEID"},
              entries);
  entries.push_back({"MASTER_ADDR", host(launch, 0)});
  entries.push_back({"MASTER_PORT", port_of_job});
  return entries;
}

Entries of_mpirun(const Launch& launch, const Place& place) {
  Entries entries;
  add_of_rank(place,
              {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
               "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_NODE_RANK"},
              entries);
  entries.push_back({"MASTER_ADDR", address(launch)});
  entries.push_back({"MASTER_PORT", free_port});
  return entries;
}

// Processes that are spawned or forked learn their rank as an argument.
Entries of_lightning(const Launch& launch, const Place& place) {
  Entries entries = {{"MASTER_ADDR", address(launch)},
                     {"MASTER_PORT", launch.nodes == 1 ? free_port : torch_port}};
  if (launch.world_size() == 1) {
    return {};
  }
  if (launch.start == StartMethod::script || launch.nodes > 1) {
    add_of_rank(place, {"NODE_RANK"}, entries);
  }
  if (launch.start == StartMethod::script) {
    add_of_rank(place, {"LOCAL_RANK", "WORLD_SIZE"}, entries);
  }
  return entries;
}

/// A rank's place as the environment of expressions.
class PlaceScope final : public Environment {
 public:
  explicit PlaceScope(const Place& place) : place_(place) {}
  std::optional<Value> lookup(std::string_view name) override { return name_of_rank(name, place_); }
  double random(const SourcePlace&) override {
    return random_unit(random_key(place_.seed, place_.rank.value), turn_++);
  }
  bool unknown(const SourcePlace&) override { return false; }

 private:
  const Place& place_;
  uint64_t turn_ = 0;
};

bool is_port(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 5 &&
                      std::all_of(text.begin(), text.end(),
                                  [](char letter) { return letter >= '0' && letter <= '9'; });
  return digits && std::stoll(text) >= 1 && std::stoll(text) <= most_port;
}

std::string told(const EnvironmentVariable& variable,
                 const std::vector<std::pair<int32_t, std::string>>& wrong) {
  std::string text;
  for (size_t i = 0; i < std::min(wrong.size(), most_told_ranks); ++i) {
    text += (i == 0 ? "" : ", ") + wrong[i].second;
  }
  const size_t more = wrong.size() - std::min(wrong.size(), most_told_ranks);
  return variable.name + " is " + text + (more > 0 ? fmt::format(", and {} more", more) : "");
}

}  // namespace

Place Launch::place_of(int32_t rank) const {
  Place place;
  place.rank = RankId{static_cast<uint32_t>(rank)};
  place.world_size = world_size();
  place.local_world_size = processes_per_node;
  place.node = rank / processes_per_node;
  place.local_rank = rank % processes_per_node;
  return place;
}

std::optional<std::string> expected_value(const std::string& variable, const Place& place) {
  const auto* found = std::find_if(rank_variables.begin(), rank_variables.end(),
                                   [&](const RankVariable& row) { return row.name == variable; });
  return found == rank_variables.end() ? std::nullopt
                                       : std::optional(digits_of(found->value(place)));
}

std::vector<EnvironmentEntry> environment_of(const Launch& launch, int32_t rank) {
  const Place place = launch.place_of(rank);
  if (launch.launcher == "torchrun") {
    return of_torchrun(launch, place);
  }
  if (launch.launcher == "horovodrun") {
    return of_horovodrun(launch, place);
  }
  if (launch.launcher == "baguarun") {
    return of_baguarun(launch, place);
  }
  if (launch.launcher == "srun") {
    return of_srun(launch, place);
  }
  return launch.launcher == "mpirun" ? of_mpirun(launch, place) : of_lightning(launch, place);
}

std::string start_line(const Launch& launch, int32_t rank) {
  const Place place = launch.place_of(rank);
  const int32_t world = launch.world_size();
  const int32_t per_node = launch.processes_per_node;
  if (launch.launcher == "torchrun") {
    const std::string rendezvous = launch.nodes == 1
                                       ? ""
                                       : fmt::format(" --nnodes={} --node-rank={} --master-addr={}",
                                                     launch.nodes, place.node, address(launch));
    const std::string restarts =
        launch.max_restarts > 0 ? fmt::format(" --max-restarts={}", launch.max_restarts) : "";
    return fmt::format("torchrun{}{} --nproc-per-node={} train.py", rendezvous, restarts, per_node);
  }
  if (launch.launcher == "horovodrun") {
    return fmt::format("horovodrun -np {} -H {} python train.py", world, hosts(launch, true));
  }
  if (launch.launcher == "baguarun") {
    return fmt::format("baguarun --host_list={} --nproc_per_node={} train.py", hosts(launch, false),
                       per_node);
  }
  if (launch.launcher == "srun") {
    return fmt::format("srun --nodes={} --ntasks-per-node={} python train.py", launch.nodes,
                       per_node);
  }
  if (launch.launcher == "mpirun") {
    return fmt::format("mpirun -np {} -H {} python train.py", world, hosts(launch, true));
  }
  const char* command =
      launch.launcher == "notebook" ? "a cell of the notebook" : "python train.py";
  const bool main_process = place.local_rank == 0 && launch.start == StartMethod::script;
  if (world == 1 || main_process) {
    const std::string where = fmt::format("MASTER_ADDR={} MASTER_PORT={} NODE_RANK={} ",
                                          address(launch), torch_port, place.node);
    return (launch.nodes > 1 ? where : "") + command;
  }
  const char* how = launch.start == StartMethod::script  ? "starts the command again"
                    : launch.start == StartMethod::spawn ? "spawns it"
                                                         : "forks it";
  return fmt::format("(the main process of its node {})", how);
}

std::string value_on(const EnvironmentVariable& variable, const Place& place) {
  std::string text;
  PlaceScope scope(place);
  for (const EnvironmentPart& part : variable.parts) {
    text += part.expression ? text_of(evaluate(*part.expression, scope)) : part.text;
  }
  return text;
}

namespace {

// A name of the machine itself, or of one that rank 0 is not on.
bool misses_rank_0(const std::string& name, const Launch& launch, const Place& place) {
  if (name == "localhost" || name.starts_with("127.") || name == "::1") {
    return place.node != 0;
  }
  for (int32_t node = 1; node < launch.nodes; ++node) {
    if (name == host(launch, node)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<EnvironmentFault> environment_faults(const std::vector<EnvironmentVariable>& variables,
                                                 const Launch& launch) {
  std::vector<EnvironmentFault> faults;
  for (const EnvironmentVariable& variable : variables) {
    const bool is_port_number = variable.name == "MASTER_PORT";
    const bool is_common = is_port_number || variable.name == "MASTER_ADDR";
    std::vector<std::pair<int32_t, std::string>> wrong;
    std::string common;
    for (int32_t rank = 0; rank < launch.world_size(); ++rank) {
      const Place place = launch.place_of(rank);
      const std::string value = value_on(variable, place);
      const std::string shown = value.empty() ? "empty" : value;
      common = rank == 0 ? value : common;
      const std::optional<std::string> expected = expected_value(variable.name, place);
      if (expected && value != *expected) {
        wrong.emplace_back(rank,
                           fmt::format("{} on rank {} (should be {})", shown, rank, *expected));
      } else if (is_common && value != common) {
        wrong.emplace_back(
            rank, fmt::format("{} on rank {} (should be {} as on rank 0)", shown, rank, common));
      } else if (is_common && !is_port_number && !launch.is_external() &&
                 misses_rank_0(value, launch, place)) {
        wrong.emplace_back(
            rank, fmt::format("{} on rank {} (rank 0 is on {})", shown, rank, host(launch, 0)));
      } else if (is_port_number && !is_port(value)) {
        wrong.emplace_back(rank, fmt::format("{} on rank {} (should be a port from 1 to {})", shown,
                                             rank, most_port));
      }
    }
    if (!wrong.empty()) {
      EnvironmentFault fault{&variable, {}, told(variable, wrong)};
      for (const auto& [rank, text] : wrong) {
        fault.ranks.push_back(rank);
      }
      faults.push_back(std::move(fault));
    }
  }
  return faults;
}

bool has_meaning(const std::string& variable) {
  return expected_value(variable, Place{}).has_value() || variable == "MASTER_ADDR" ||
         variable == "MASTER_PORT" || variable == "CUDA_VISIBLE_DEVICES" ||
         variable == "PL_TORCH_DISTRIBUTED_BACKEND";
}

}  // namespace lockstep
