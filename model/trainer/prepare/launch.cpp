#include "model/trainer/prepare/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <numeric>

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

/// A variable that gives a rank its place.
struct RankVariable {
  const char* name;
  int64_t (*value)(const Launch&, const Place&);
};

int64_t rank_of(const Launch&, const Place& place) { return place.rank.value; }
int64_t world_size_of(const Launch&, const Place& place) { return place.world_size; }
int64_t local_rank_of(const Launch&, const Place& place) { return place.local_rank; }
int64_t local_size_of(const Launch&, const Place& place) { return place.local_world_size; }
int64_t node_of(const Launch&, const Place& place) { return place.node; }
int64_t node_count_of(const Launch& launch, const Place&) { return launch.nodes; }

// horovod/runner/common/util/hosts.py, get_host_assignments: of the hosts that have this local
// rank, how many come before, and how many there are.
int64_t hosts_with_local_rank(const Launch& launch, const Place& place, int32_t before) {
  int64_t hosts = 0;
  for (int32_t node = 0; node < before; ++node) {
    hosts += launch.processes_of(node) > place.local_rank ? 1 : 0;
  }
  return hosts;
}
int64_t cross_rank_of(const Launch& launch, const Place& place) {
  return hosts_with_local_rank(launch, place, place.node);
}
int64_t cross_size_of(const Launch& launch, const Place& place) {
  return hosts_with_local_rank(launch, place, launch.nodes);
}

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
    {"HOROVOD_CROSS_RANK", cross_rank_of},
    {"HOROVOD_CROSS_SIZE", cross_size_of},
});

/// A rank, and what its launcher makes of it.
struct StartedRank {
  const Launch& launch;
  Place place;
};

void add_of_rank(const StartedRank& started, std::initializer_list<const char*> variables,
                 Entries& to) {
  const auto rank = static_cast<int32_t>(started.place.rank.value);
  for (const char* name : variables) {
    to.push_back({name, *expected_value(name, started.launch, rank)});
  }
}

Entries of_torchrun(const StartedRank& started) {
  const auto& [launch, place] = started;
  Entries entries;
  add_of_rank(started,
              {"LOCAL_RANK", "RANK", "GROUP_RANK", "ROLE_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE",
               "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"},
              entries);
  entries.push_back({"ROLE_NAME", "default"});
  entries.push_back({"MASTER_ADDR", launch.address()});
  entries.push_back({"MASTER_PORT", torch_port});
  entries.push_back({"TORCHELASTIC_RESTART_COUNT", digits_of(place.attempt)});
  entries.push_back({"TORCHELASTIC_MAX_RESTARTS", digits_of(launch.max_restarts)});
  entries.push_back({"TORCHELASTIC_RUN_ID", "none"});
  if (launch.processes_per_node > 1) {
    entries.push_back({"OMP_NUM_THREADS", "1"});
  }
  return entries;
}

Entries of_horovodrun(const StartedRank& started) {
  const auto& [launch, place] = started;
  Entries entries = {{"HOROVOD_HOSTNAME", launch.host_of(place.node)}};
  add_of_rank(started,
              {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
               "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"},
              entries);
  entries.push_back({"HOROVOD_CONTROLLER", "gloo"});
  entries.push_back({"HOROVOD_CPU_OPERATIONS", "gloo"});
  entries.push_back({"HOROVOD_GLOO_RENDEZVOUS_ADDR", launch.address()});
  return entries;
}

Entries of_baguarun(const StartedRank& started) {
  const auto& [launch, place] = started;
  Entries entries;
  add_of_rank(started, {"RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
              entries);
  entries.push_back({"MASTER_ADDR", launch.endpoint.empty() ? launch.address() : launch.endpoint});
  entries.push_back({"MASTER_PORT", digits_of(launch.master_port)});
  entries.push_back({"BAGUA_SERVICE_PORT", digits_of(launch.service_port)});
  return entries;
}

std::string node_list(const Launch& launch) {
  std::string text;
  for (int32_t node = 0; node < launch.nodes; ++node) {
    text += (node == 0 ? "" : ",") + launch.host_of(node);
  }
  return text;
}

// Lightning takes MASTER_ADDR from the node list and MASTER_PORT from the job's number.
Entries of_srun(const StartedRank& started) {
  const auto& [launch, place] = started;
  Entries entries = {{"SLURM_JOB_ID", assumed_job}, {"SLURM_NODELIST", node_list(launch)}};
  add_of_rank(started,
              {"SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_NNODES", "SLURM_PROCID",
               "SLURM_LOCALID", "SLURM_NODEID"},
              entries);
  entries.push_back({"MASTER_ADDR", launch.host_of(0)});
  entries.push_back({"MASTER_PORT", port_of_job});
  return entries;
}

Entries of_mpirun(const StartedRank& started) {
  const auto& [launch, place] = started;
  Entries entries;
  add_of_rank(started,
              {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
               "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_NODE_RANK"},
              entries);
  entries.push_back({"MASTER_ADDR", launch.address()});
  entries.push_back({"MASTER_PORT", free_port});
  return entries;
}

// Processes that are spawned or forked learn their rank as an argument.
Entries of_lightning(const StartedRank& started) {
  const auto& [launch, place] = started;
  Entries entries = {{"MASTER_ADDR", launch.address()},
                     {"MASTER_PORT", launch.nodes == 1 ? free_port : torch_port}};
  if (launch.world_size() == 1 || !launch.joins_torch) {
    return {};
  }
  if (launch.start == StartMethod::script || launch.nodes > 1) {
    add_of_rank(started, {"NODE_RANK"}, entries);
  }
  if (launch.start == StartMethod::script) {
    add_of_rank(started, {"LOCAL_RANK", "WORLD_SIZE"}, entries);
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
  const PositionOnNode position =
      is_uneven() ? position_on_node(processes_of_nodes, rank)
                  : PositionOnNode{rank / processes_per_node, rank % processes_per_node,
                                   processes_per_node};
  place.local_world_size = position.local_world_size;
  place.node = position.node;
  place.local_rank = position.local_rank;
  return place;
}

int32_t Launch::world_size() const {
  return is_uneven() ? std::accumulate(processes_of_nodes.begin(), processes_of_nodes.end(), 0)
                     : nodes * processes_per_node;
}

int32_t Launch::processes_of(int32_t node) const {
  return is_uneven() ? processes_of_nodes[static_cast<size_t>(node)] : processes_per_node;
}

std::string Launch::host_of(int32_t node) const {
  if (!hosts.empty()) {
    return hosts[static_cast<size_t>(node)];
  }
  return nodes == 1 ? "localhost" : fmt::format("node{}", node);
}

std::string Launch::address() const {
  return nodes == 1 && hosts.empty() ? "127.0.0.1" : host_of(0);
}

std::optional<std::string> expected_value(const std::string& variable, const Launch& launch,
                                          int32_t rank) {
  const auto* found = std::find_if(rank_variables.begin(), rank_variables.end(),
                                   [&](const RankVariable& row) { return row.name == variable; });
  return found == rank_variables.end()
             ? std::nullopt
             : std::optional(digits_of(found->value(launch, launch.place_of(rank))));
}

std::vector<EnvironmentEntry> environment_of(const Launch& launch, int32_t rank) {
  const StartedRank started{launch, launch.place_of(rank)};
  if (launch.launcher == "torchrun") {
    return of_torchrun(started);
  }
  if (launch.launcher == "horovodrun") {
    return of_horovodrun(started);
  }
  if (launch.launcher == "baguarun" || launch.launcher == "bagua.distributed.launch") {
    return of_baguarun(started);
  }
  if (launch.launcher == "srun") {
    return of_srun(started);
  }
  return launch.launcher == "mpirun" ? of_mpirun(started) : of_lightning(started);
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
    if (name == launch.host_of(node)) {
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
      const std::optional<std::string> expected = expected_value(variable.name, launch, rank);
      if (expected && value != *expected) {
        wrong.emplace_back(rank,
                           fmt::format("{} on rank {} (should be {})", shown, rank, *expected));
      } else if (is_common && value != common) {
        wrong.emplace_back(
            rank, fmt::format("{} on rank {} (should be {} as on rank 0)", shown, rank, common));
      } else if (is_common && !is_port_number && !launch.is_external() &&
                 misses_rank_0(value, launch, place)) {
        wrong.emplace_back(
            rank, fmt::format("{} on rank {} (rank 0 is on {})", shown, rank, launch.host_of(0)));
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
  return expected_value(variable, Launch{}, 0).has_value() || variable == "MASTER_ADDR" ||
         variable == "MASTER_PORT" || variable == "CUDA_VISIBLE_DEVICES" ||
         variable == "PL_TORCH_DISTRIBUTED_BACKEND";
}

}  // namespace lockstep
