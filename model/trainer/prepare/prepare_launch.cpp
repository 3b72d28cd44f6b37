// The launcher, and what becomes of a program whose processes are spawned or forked.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/framework/lightning_versions.hpp"
#include "model/trainer/prepare/host_slots.hpp"
#include "model/trainer/prepare/node_range.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

int64_t whole(const Object& launcher, std::string_view name, int64_t otherwise) {
  const PlainValue* given = launcher.find(name);
  const int64_t* number = given == nullptr ? nullptr : given->get_if<int64_t>();
  return number == nullptr ? otherwise : *number;
}

/// How many processes a launcher starts.
struct Started {
  int64_t nodes = 1;
  int64_t processes = 1;  ///< in all
};

// `nnodes` may be "2:4" with torchrun: what the trainer asks for, if it lies between.
int64_t elastic_nodes(const Object& launcher, int64_t asked) {
  const NodeRange range = node_range_of(launcher);
  return std::clamp(asked, range.least, range.most);
}

Started started_by(const Object& launcher, const Launch& launch) {
  if (launcher.name == "torchrun") {
    const int64_t nodes = elastic_nodes(launcher, launch.nodes);
    return {nodes, nodes * whole(launcher, "nproc_per_node", 1)};
  }
  if (launcher.name == "srun") {
    const int64_t nodes = whole(launcher, "nodes", 1);
    return {nodes, nodes * whole(launcher, "ntasks_per_node", 1)};
  }
  const int64_t per_node = whole(launcher, "nproc_per_node", 1);
  const int64_t nodes = launcher.name == "baguarun"
                            ? std::max<int64_t>(1, std::ssize(hosts_of(launcher).hosts))
                            : whole(launcher, "nnodes", 1);
  return {nodes, nodes * per_node};
}

bool is_of_bagua(const Object& launcher) {
  return launcher.name == "baguarun" || launcher.name == "bagua.distributed.launch";
}

bool is_modelled_launcher(std::string_view name) {
  constexpr std::string_view modelled[] = {
      "lightning", "notebook", "torchrun", "srun", "mpirun", "baguarun", "bagua.distributed.launch",
      "horovodrun"};
  return std::ranges::find(modelled, name) != std::end(modelled);
}

std::string sizes_text(const RanksOfNodes& processes) {
  return fmt::format("{} process{} on {} node{} ({})",
                     std::accumulate(processes.begin(), processes.end(), int64_t{0}),
                     processes.size() == 1 && processes.front() == 1 ? "" : "es", processes.size(),
                     processes.size() == 1 ? "" : "s", fmt::join(processes, ", "));
}

// mpirun without hosts starts them where its resource manager says. Lightning takes the device of
// the local rank from a list of `devices`, which is as long on every node.
void check_hosts(Preparation& preparation, const Object& launcher) {
  Launch& launch = preparation.placement.launch;
  const std::optional<RanksOfNodes> processes = processes_on_hosts(preparation, launcher);
  if (!processes) {
    return;
  }
  const bool has_hosts = !hosts_of(launcher).hosts.empty();
  Launch started = launch;
  set_hosts(launcher, *processes, started);
  const bool same_nodes = !has_hosts || started.nodes == launch.nodes;
  if (started.world_size() == launch.world_size() && same_nodes &&
      started.is_uneven() == launch.is_uneven()) {
    launch.hosts = has_hosts ? started.hosts : std::vector<std::string>();
    return;
  }
  add_problem(preparation, Kind::refused, launcher.place,
              fmt::format("{} starts {}, but {} expects {} on each of {} node{}", launcher.name,
                          sizes_text(*processes),
                          preparation.scenario->is_bare_program() ? "the cluster" : "the trainer",
                          launch.processes_per_node, launch.nodes, launch.nodes == 1 ? "" : "s"),
              preparation.scenario->is_bare_program()
                  ? "make cluster.ranks what the launcher starts"
                  : "make devices x num_nodes what the launcher starts, with as many slots on each "
                    "host as `devices`",
              refused_code);
}

void check_size(Preparation& preparation, const Object& launcher) {
  const Launch& launch = preparation.placement.launch;
  if (launcher.name == "horovodrun" || launcher.name == "mpirun") {
    if (!preparation.placement.strategy.is_horovod) {
      check_hosts(preparation, launcher);  // Horovod has taken them as they are
    }
    return;
  }
  if (launcher.name == "torchrun" && preparation.placement.strategy.is_horovod) {
    // gloo_context.cc: without HOROVOD_RANK and HOROVOD_SIZE each is rank 0 of 1.
    add_problem(preparation, Kind::refused, launcher.place,
                "torchrun does not set what Horovod reads: each process would train alone, as rank "
                "0 of 1",
                "use launcher: horovodrun or mpirun", refused_code);
    return;
  }
  const Started started = started_by(launcher, launch);
  if (started.nodes < 1 || started.processes < 1) {
    add_problem(preparation, Kind::invalid, launcher.place,
                fmt::format("{} starts no process", launcher.name), "numbers are at least 1");
    return;
  }
  if (started.processes != launch.world_size() || started.nodes != launch.nodes) {
    add_problem(preparation, Kind::refused, launcher.place,
                fmt::format("{} starts {} processes on {} node{}, but the trainer expects {} on {}",
                            launcher.name, started.processes, started.nodes,
                            started.nodes == 1 ? "" : "s", launch.world_size(), launch.nodes),
                preparation.placement.traits.drives_all_devices()
                    ? "start one process on each node, which drives all its devices "
                      "(nproc_per_node: 1)"
                    : "make devices x num_nodes what the launcher starts",
                refused_code);
  }
}

// Whether the version of Lightning sees that processes exist already.
void check_detection(Preparation& preparation, const Object& launcher) {
  const Placement& placement = preparation.placement;
  const auto contradiction = [&](const std::string& message, const std::string& remedy) {
    add_problem(preparation, Kind::refused, launcher.place, message, remedy, refused_code);
  };
  if (placement.launch.world_size() == 1) {
    return;
  }
  if (launcher.name == "mpirun" && placement.lightning < v2_0 && !placement.strategy.is_horovod) {
    contradiction(
        "Lightning reads what mpirun sets from 2.0 on: each process would start all processes "
        "again",
        "use torchrun or srun");
  } else if (launcher.name == "horovodrun" && !placement.strategy.is_horovod) {
    contradiction(
        fmt::format(
            "{} does not read what horovodrun sets: each process would start all processes again",
            placement.strategy.name),
        "use strategy: horovod, or launcher: torchrun");
  } else if (placement.launch.start != StartMethod::script) {
    contradiction(fmt::format("{} has started the processes, but {} starts them again",
                              launcher.name, placement.strategy.name),
                  placement.traits.drives_xla ? "leave the launcher out"
                                              : "use strategy: ddp, or launcher: lightning");
  }
}

std::string_view name_of(Unpicklable culprit) {
  switch (culprit) {
    case Unpicklable::model: return "model";
    case Unpicklable::transform: return "transform";
    case Unpicklable::optimizer: return "optimizer";
    case Unpicklable::dataloader: return "dataloader";
    case Unpicklable::callback: return "callback";
  }
  return "";
}

// torch.multiprocessing pickles the trainer and all that it holds; a fork copies memory.
void check_pickling(Preparation& preparation) {
  const Placement& placement = preparation.placement;
  const bool spawns = placement.launch.start == StartMethod::spawn && placement.traits.wraps_in_ddp;
  for (const Placed<Unpicklable>& culprit : preparation.scenario->model->unpicklable) {
    if (spawns) {
      add_problem(preparation, Kind::refused, culprit.place,
                  fmt::format("{} sends the {} to its processes, and it cannot be pickled",
                              placement.strategy.name, name_of(culprit.value)),
                  "use strategy: ddp, or make it picklable: no lambda, open file or local class",
                  refused_code);
    } else {
      add_problem(preparation, Kind::note, culprit.place,
                  fmt::format("`unpicklable: {}` has no effect here: {} pickles nothing",
                              name_of(culprit.value), placement.strategy.name));
    }
  }
}

bool touches_gpu(const Statement& statement) {
  using Statements = StatementKind;
  const bool to_gpu =
      statement.kind == Statements::copy && statement.work.to && !statement.work.to->value.cpu;
  return to_gpu || statement.kind == Statements::kernel ||
         statement.kind == Statements::synchronize || statement.kind == Statements::empty_cache;
}

bool starts_processes(const Statement& statement) {
  return statement.kind == StatementKind::fit || statement.kind == StatementKind::validate ||
         statement.kind == StatementKind::test || statement.kind == StatementKind::predict;
}

// A fork cannot use CUDA that its parent has initialised (_check_bad_cuda_fork).
void check_fork(Preparation& preparation) {
  const Placement& placement = preparation.placement;
  const auto& program = preparation.scenario->program;
  if (placement.launch.start != StartMethod::fork || placement.cpu || !program) {
    return;
  }
  for (const char* name : {"__init__", "main"}) {
    const Hook* hook = program->find(name);
    if (hook == nullptr) {
      continue;
    }
    for (const Statement& statement : hook->statements) {
      if (starts_processes(statement)) {
        break;
      }
      if (touches_gpu(statement)) {
        const bool is_xla = placement.device == DeviceType::tpu;
        add_problem(preparation, Kind::refused, statement.place,
                    is_xla ? "Accessing the XLA device before processes have spawned is not allowed"
                           : fmt::format("{} cannot fork: CUDA is initialised here already",
                                         placement.strategy.name),
                    is_xla ? "use the TPU in hooks only"
                           : "use the GPU in hooks only, or strategy: ddp in a script",
                    refused_code);
        return;
      }
    }
  }
}

}  // namespace

void take_nodes_of_torchrun(Preparation& preparation, Scenario& scenario) {
  Given<int64_t>& nodes = scenario.trainer->num_nodes;
  if (!nodes || nodes->value != TrainerSpec::nodes_of_launcher) {
    return;
  }
  nodes->value = 1;
  if (!scenario.launcher || scenario.launcher->name != "torchrun") {
    add_problem(preparation, Kind::refused, nodes->place,
                "GROUP_WORLD_SIZE is not set: torchrun sets it",
                "write launcher: {torchrun: {nnodes: \"2:4\", nproc_per_node: 8}}, or a number",
                refused_code);
    return;
  }
  preparation.placement.launch.takes_any_nodes = true;
  const int64_t most = node_range_of(*scenario.launcher).most;
  nodes->value = scenario.cluster ? std::min(most, value_or(scenario.cluster->nodes, most)) : most;
}

namespace {

void prepare_launcher(Preparation& preparation) {
  const Scenario& scenario = *preparation.scenario;
  Launch& launch = preparation.placement.launch;
  if (scenario.is_bare_program()) {
    const RunOptions& options = preparation.options;
    const int32_t per_node = std::clamp(options.ranks_per_node, 1, options.world_size);
    const bool divides = options.world_size % per_node == 0;
    launch.processes_per_node = divides ? per_node : options.world_size;
    launch.nodes = options.world_size / launch.processes_per_node;
    if (!options.ranks_of_nodes.empty()) {
      launch.processes_of_nodes = options.ranks_of_nodes;
      launch.processes_per_node = per_node;
      launch.nodes = static_cast<int32_t>(options.ranks_of_nodes.size());
    }
  }
  if (scenario.launcher && !is_modelled_launcher(scenario.launcher->name)) {
    add_problem(preparation, Kind::unsupported, scenario.launcher->place,
                fmt::format("the launcher {} is not modelled yet", scenario.launcher->name),
                "use torchrun, srun or mpirun, or leave it out");
    return;
  }
  const bool by_lightning = scenario.launcher && scenario.launcher->name == "lightning";
  const bool is_asked_for = scenario.launcher && scenario.launcher->place.line > 0;
  const bool starts_others = !scenario.is_bare_program() && launch.world_size() > 1;
  const bool needs_horovodrun = preparation.placement.strategy.is_horovod && by_lightning;
  if (needs_horovodrun && is_asked_for && starts_others) {
    add_problem(preparation, Kind::refused, scenario.launcher->place,
                "Lightning starts no processes for Horovod: there would be one",
                "use launcher: horovodrun or mpirun", refused_code);
    return;
  }
  if (scenario.launcher) {
    // Nothing else starts more than one process for Horovod.
    launch.launcher = needs_horovodrun ? "horovodrun" : scenario.launcher->name;
    if (scenario.launcher->name == "torchrun" && !read_torchrun(preparation, *scenario.launcher)) {
      return;
    }
    const size_t known = preparation.problems.size();
    if (is_of_bagua(*scenario.launcher)) {
      read_bagua_launcher(preparation, *scenario.launcher);
    }
    const bool is_readable = preparation.problems.size() == known;
    if (launch.is_external() && !needs_horovodrun && is_readable) {
      check_size(preparation, *scenario.launcher);
    }
    if (launch.is_external() && !needs_horovodrun && !scenario.is_bare_program()) {
      check_detection(preparation, *scenario.launcher);
    }
  }
  if (!scenario.is_bare_program()) {
    check_pickling(preparation);
    check_fork(preparation);
  }
}

// What only restarts cost.
void note_without_restarts(Preparation& preparation) {
  const std::optional<ClusterSpec>& cluster = preparation.scenario->cluster;
  const std::optional<Object>& launcher = preparation.scenario->launcher;
  const bool is_torchrun = launcher && launcher->name == "torchrun";
  const bool restarts = is_torchrun && whole(*launcher, "max_restarts", 0) > 0;
  // Of a range of nodes those that come later make the others start again.
  const PlainValue* const nodes = is_torchrun ? launcher->find("nnodes") : nullptr;
  const bool may_be_range = nodes != nullptr && nodes->get_if<int64_t>() == nullptr;
  const bool is_wrong = is_torchrun && whole(*launcher, "max_restarts", 0) < 0;
  if (!cluster || restarts || may_be_range || is_wrong) {
    return;
  }
  const auto tell = [&](const auto& given, const char* key) {
    if (given && given->place.line > 0) {
      add_problem(preparation, Kind::note, given->place,
                  fmt::format("`{}` has no effect here: nothing starts ranks again", key),
                  "write launcher: {torchrun: {nproc_per_node: 8, max_restarts: 3}}");
    }
  };
  tell(cluster->mtbf, "mtbf");
  tell(cluster->start_time, "start_time");
}

}  // namespace

void prepare_launch(Preparation& preparation) {
  prepare_launcher(preparation);
  note_without_restarts(preparation);
}

}  // namespace lockstep
