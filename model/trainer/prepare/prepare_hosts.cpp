// On which hosts a launcher places processes, and how many on each.
#include <fmt/format.h>

#include <algorithm>

#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/prepare/host_slots.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

bool names_processes_and_hosts(const Object& launcher) {
  return launcher.name == "horovodrun" || launcher.name == "mpirun";
}

std::optional<int64_t> processes_asked(const Object& launcher) {
  const PlainValue* const given = launcher.find("np");
  const int64_t* const number = given == nullptr ? nullptr : given->get_if<int64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

// horovodrun requires -np; mpirun starts a process in each slot.
std::optional<int64_t> processes_of(Preparation& preparation, const Object& launcher,
                                    const HostList& hosts) {
  const std::optional<int64_t> asked = processes_asked(launcher);
  if (asked && *asked < 1) {
    add_problem(preparation, Kind::invalid, launcher.find("np")->place,
                fmt::format("{} starts no process: `np` is {}", launcher.name, *asked),
                "at least 1");
    return std::nullopt;
  }
  if (!asked && (launcher.name == "horovodrun" || hosts.hosts.empty())) {
    add_problem(preparation, Kind::invalid, launcher.place,
                fmt::format("{}: `np`, the number of processes, is missing", launcher.name),
                launcher.name == "horovodrun"
                    ? "write {horovodrun: {np: 8, hosts: \"host1:4,host2:4\"}}"
                    : "write {mpirun: {np: 8}}: without it and without hosts, mpirun starts one "
                      "process per processor core of the machine");
    return std::nullopt;
  }
  const int64_t processes = asked.value_or(hosts.slots());
  if (!hosts.hosts.empty() && hosts.slots() < processes) {
    add_problem(preparation, Kind::refused, hosts.place,
                fmt::format("{}: {} processes are requested, and the hosts have {} slot{}",
                            launcher.name, processes, hosts.slots(), hosts.slots() == 1 ? "" : "s"),
                "give the hosts as many slots as `np`, as in {np: 8, hosts: \"host1:4,host2:4\"}",
                refused_code);
    return std::nullopt;
  }
  if (processes > maximum_ranks) {
    add_problem(preparation, Kind::invalid, launcher.place,
                fmt::format("{} processes are too many", processes),
                fmt::format("at most {}", maximum_ranks));
    return std::nullopt;
  }
  return processes;
}

// -1 and auto are all that there are, whatever their number.
bool counts_devices(const PlainValue& devices) {
  const int64_t* const number = devices.get_if<int64_t>();
  return number != nullptr && *number > 0;
}

// accelerator_connector.py of 1.4 and 1.5, check_horovod. True: it was refused.
bool refuse_counted_devices(Preparation& preparation, const std::string& launcher,
                            const DevicesOfNode& devices) {
  const Placement& placement = preparation.placement;
  const int64_t number = std::ssize(placement.devices);
  if (devices.asked == nullptr || number == 1 || placement.cpu || placement.lightning >= v1_6) {
    return false;
  }
  add_problem(preparation, Kind::refused, devices.asked->place,
              fmt::format("Horovod does not support setting the number of GPUs ({}): {} says how "
                          "many processes there are",
                          number, launcher),
              fmt::format("write gpus: 1, and launcher: {{horovodrun: {{np: {}}}}}", number),
              refused_code);
  return true;
}

// accelerator_connector.py: `devices` counts nothing. From 1.6 on (_handle_horovod) it is not read;
// before, more than one GPU was refused (check_horovod).
void check_devices(Preparation& preparation, const Object& launcher, const DevicesOfNode& devices) {
  const Placement& placement = preparation.placement;
  const int64_t local = placement.launch.processes_per_node;
  const int64_t number = std::ssize(placement.devices);
  if (devices.asked == nullptr || number == 1) {
    return;
  }
  if (!refuse_counted_devices(preparation, launcher.name, devices) &&
      counts_devices(*devices.asked) && number != local) {
    add_problem(
        preparation, Kind::warning, devices.asked->place,
        fmt::format("`devices` is ignored: {} starts {}{} process{} on a node", launcher.name,
                    placement.launch.is_uneven() ? "up to " : "", local, local == 1 ? "" : "es"),
        "write devices: 1, as Horovod's documentation does", ignored_code);
  }
}

// Each process has the GPU of its local rank.
void take_devices(Preparation& preparation, const Object& launcher, const DevicesOfNode& devices) {
  Placement& placement = preparation.placement;
  const int64_t local = placement.launch.processes_per_node;
  check_devices(preparation, launcher, devices);
  if (!placement.cpu && local > std::ssize(devices.visible)) {
    add_problem(preparation, Kind::refused, launcher.place,
                fmt::format("{} starts {} processes on a host where {} GPU{} visible: each takes "
                            "the GPU of its local rank",
                            launcher.name, local, devices.visible.size(),
                            devices.visible.size() == 1 ? " is" : "s are"),
                "give a host as many slots as it has GPUs", refused_code);
    return;
  }
  placement.devices.clear();
  placement.numbers.clear();
  for (int64_t index = 0; index < local; ++index) {
    placement.numbers.push_back(index);
    placement.devices.push_back(placement.cpu ? index
                                              : devices.visible[static_cast<size_t>(index)]);
  }
}

bool is_even(const RanksOfNodes& nodes) {
  return std::ranges::all_of(nodes, [&](int32_t ranks) { return ranks == nodes.front(); });
}

}  // namespace

std::optional<RanksOfNodes> processes_on_hosts(Preparation& preparation, const Object& launcher) {
  if (!names_processes_and_hosts(launcher)) {
    return std::nullopt;
  }
  const HostList hosts = hosts_of(launcher);
  if (!hosts.problem.empty()) {
    add_problem(preparation, Kind::invalid, hosts.place, hosts.problem, hosts.remedy);
    return std::nullopt;
  }
  const std::optional<int64_t> processes = processes_of(preparation, launcher, hosts);
  if (!processes) {
    return std::nullopt;
  }
  return hosts.hosts.empty() ? RanksOfNodes{static_cast<int32_t>(*processes)}
                             : fill_hosts(hosts, *processes);
}

void set_hosts(const Object& launcher, const RanksOfNodes& processes, Launch& launch) {
  launch.nodes = static_cast<int32_t>(processes.size());
  launch.processes_per_node = std::ranges::max(processes);
  launch.processes_of_nodes = is_even(processes) ? RanksOfNodes() : processes;
  name_hosts(launcher, launch);
}

// Those that have a process; numbers alone have no names.
void name_hosts(const Object& launcher, Launch& launch) {
  launch.hosts.clear();
  const HostList list = hosts_of(launcher);
  for (const HostSlots& host : list.hosts) {
    if (std::ssize(launch.hosts) < launch.nodes) {
      launch.hosts.push_back(host.name);
    }
  }
  if (std::ssize(launch.hosts) != launch.nodes ||
      (launch.nodes == 1 && launch.hosts.front() == "node0")) {
    launch.hosts.clear();
  }
}

void take_processes_of_launcher(Preparation& preparation, const Scenario& scenario,
                                const DevicesOfNode& devices) {
  Placement& placement = preparation.placement;
  if (placement.nodes > 1) {
    add_problem(preparation, Kind::refused, scenario.trainer->num_nodes->place,
                "Horovod does not support setting num_nodes: horovodrun or mpirun says how many "
                "processes there are, and where",
                "leave num_nodes out and name the hosts, as in {horovodrun: {np: 8, hosts: "
                "\"host1:4,host2:4\"}}",
                refused_code);
    return;
  }
  if (!scenario.launcher || !names_processes_and_hosts(*scenario.launcher)) {
    refuse_counted_devices(preparation, "horovodrun", devices);
    return;
  }
  const std::optional<RanksOfNodes> processes = processes_on_hosts(preparation, *scenario.launcher);
  if (processes) {
    set_hosts(*scenario.launcher, *processes, placement.launch);
    placement.nodes = placement.launch.nodes;
    take_devices(preparation, *scenario.launcher, devices);
  }
}

// Mistakes are reported with the launcher.
void take_hosts_of_bare_program(Preparation& preparation) {
  const std::optional<Object>& launcher = preparation.scenario->launcher;
  if (!launcher || !names_processes_and_hosts(*launcher)) {
    return;
  }
  const HostList hosts = hosts_of(*launcher);
  RunOptions& options = preparation.options;
  const int64_t processes = processes_asked(*launcher).value_or(hosts.slots());
  if (!hosts.problem.empty() || hosts.hosts.empty() || hosts.slots() < processes ||
      processes != options.world_size) {
    return;
  }
  const RanksOfNodes filled = fill_hosts(hosts, processes);
  options.ranks_per_node = std::ranges::max(filled);
  options.ranks_of_nodes = is_even(filled) ? RanksOfNodes() : filled;
}

}  // namespace lockstep
