// The command with which somebody starts a rank.
#include <fmt/format.h>

#include "model/trainer/prepare/launch.hpp"

namespace lockstep {

namespace {

// horovodrun -H host1:4,host2:2; baguarun --host_list host1,host2.
std::string hosts_of_line(const Launch& launch, bool slots) {
  std::string text;
  for (int32_t node = 0; node < launch.nodes; ++node) {
    text += (node == 0 ? "" : ",") + launch.host_of(node);
    text += slots ? fmt::format(":{}", launch.processes_of(node)) : "";
  }
  return text;
}

std::string line_of_torchrun(const Launch& launch, const Place& place) {
  std::string line = "torchrun";
  if (launch.is_standalone) {
    line += " --standalone";
  } else if (!launch.rendezvous.empty() && !launch.is_static()) {
    const std::string nodes = launch.least_nodes == launch.most_nodes
                                  ? std::to_string(launch.most_nodes)
                                  : fmt::format("{}:{}", launch.least_nodes, launch.most_nodes);
    line +=
        fmt::format(" --nnodes={} --rdzv-backend={} --rdzv-endpoint={}", nodes, launch.rendezvous,
                    launch.endpoint.empty() ? launch.address() : launch.endpoint);
  } else if (launch.nodes > 1) {
    line += fmt::format(" --nnodes={} --node-rank={} --master-addr={}", launch.nodes, place.node,
                        launch.address());
  }
  if (launch.max_restarts > 0) {
    line += fmt::format(" --max-restarts={}", launch.max_restarts);
  }
  return line + fmt::format(" --nproc-per-node={} train.py", launch.processes_per_node);
}

std::string line_of_bagua(const Launch& launch, const Place& place) {
  const int32_t per_node = launch.processes_per_node;
  if (launch.launcher == "baguarun") {
    return fmt::format("baguarun --host_list={} --nproc_per_node={} train.py",
                       hosts_of_line(launch, false), per_node);
  }
  const std::string several =
      launch.nodes == 1
          ? ""
          : fmt::format(" --nnodes={} --node_rank={} --master_addr={}", launch.nodes, place.node,
                        launch.endpoint.empty() ? launch.address() : launch.endpoint);
  return fmt::format("python -m bagua.distributed.launch{} --nproc_per_node={} train.py", several,
                     per_node);
}

std::string line_of_lightning(const Launch& launch, const Place& place) {
  const char* command =
      launch.launcher == "notebook" ? "a cell of the notebook" : "python train.py";
  const bool main_process = place.local_rank == 0 && launch.start == StartMethod::script;
  if (launch.world_size() == 1 || main_process) {
    const std::string where =
        fmt::format("MASTER_ADDR={} MASTER_PORT=29500 NODE_RANK={} ", launch.address(), place.node);
    return (launch.nodes > 1 ? where : "") + command;
  }
  const char* how = launch.start == StartMethod::script  ? "starts the command again"
                    : launch.start == StartMethod::spawn ? "spawns it"
                                                         : "forks it";
  return fmt::format("(the main process of its node {})", how);
}

}  // namespace

std::string start_line(const Launch& launch, int32_t rank) {
  const Place place = launch.place_of(rank);
  const int32_t world = launch.world_size();
  if (launch.launcher == "torchrun") {
    return line_of_torchrun(launch, place);
  }
  if (launch.launcher == "horovodrun") {
    return fmt::format("horovodrun -np {} -H {} python train.py", world,
                       hosts_of_line(launch, true));
  }
  if (launch.launcher == "baguarun" || launch.launcher == "bagua.distributed.launch") {
    return line_of_bagua(launch, place);
  }
  if (launch.launcher == "srun") {
    return fmt::format("srun --nodes={} --ntasks-per-node={} python train.py", launch.nodes,
                       launch.processes_per_node);
  }
  if (launch.launcher == "mpirun") {
    return fmt::format("mpirun -np {} -H {} python train.py", world, hosts_of_line(launch, true));
  }
  return line_of_lightning(launch, place);
}

}  // namespace lockstep
