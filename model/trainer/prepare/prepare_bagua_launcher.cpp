// The arguments of baguarun and of bagua.distributed.launch (bagua/script/baguarun.py,
// bagua/distributed/launch.py).
#include <fmt/format.h>

#include <algorithm>

#include "model/trainer/prepare/host_slots.hpp"
#include "model/trainer/prepare/prepare_parts.hpp"

namespace lockstep {

namespace {

using Kind = Problem::Kind;

const PlainValue* argument_of_bagua(const Object& launcher, std::string_view name,
                                    int64_t& number) {
  const PlainValue* const given = launcher.find(name);
  const int64_t* const written = given == nullptr ? nullptr : given->get_if<int64_t>();
  number = written == nullptr ? 0 : *written;
  return written == nullptr ? nullptr : given;
}

void read_port(Preparation& preparation, const Object& launcher, std::string_view name,
               int64_t& port) {
  int64_t number = 0;
  if (const PlainValue* const given = argument_of_bagua(launcher, name, number)) {
    if (number < 1 || number > 65535) {
      add_problem(preparation, Kind::invalid, given->place,
                  fmt::format("`{}` is {}, which is no port", name, number),
                  "ports are 1 to 65535");
    }
    port = number;
  }
}

// Its default is 127.0.0.1, which a job of several nodes has to replace.
void read_address(Preparation& preparation, const Object& launcher) {
  Launch& launch = preparation.placement.launch;
  const PlainValue* const given = launcher.find("master_addr");
  const std::string* const address = given == nullptr ? nullptr : given->get_if<std::string>();
  const bool is_default = address == nullptr;  // baguarun gives its first host
  if (is_default && launcher.name == "baguarun") {
    return;
  }
  const std::string meeting = is_default ? "127.0.0.1" : *address;
  launch.endpoint = is_default ? launch.endpoint : meeting;
  if (launch.nodes > 1 && (meeting == "localhost" || meeting.starts_with("127."))) {
    add_problem(preparation, Kind::refused, is_default ? launcher.place : given->place,
                fmt::format("`master_addr` is {}{}, where the processes of each node meet by "
                            "themselves: the nodes never find each other",
                            meeting, is_default ? " by default" : ""),
                "write the name or address of rank 0's node as master_addr", refused_code);
  }
}

// One command per node: what is the same for all of them is the scenario's.
void check_node_rank(Preparation& preparation, const Object& launcher) {
  int64_t number = 0;
  const PlainValue* const given = argument_of_bagua(launcher, "node_rank", number);
  if (given == nullptr) {
    return;
  }
  const int32_t nodes = preparation.placement.launch.nodes;
  if (nodes > 1) {
    add_problem(preparation, Kind::invalid, given->place,
                "`node_rank` differs from node to node: a scenario describes the commands of all "
                "nodes",
                "leave it out; each node is taken to be given its own");
  } else if (number != 0) {
    add_problem(preparation, Kind::refused, given->place,
                fmt::format("`node_rank` is {} on the only node: rank 0 does not exist, and all "
                            "others wait for it",
                            number),
                "write node_rank: 0, or leave it out", refused_code);
  }
}

}  // namespace

void read_bagua_launcher(Preparation& preparation, const Object& launcher) {
  Launch& launch = preparation.placement.launch;
  int64_t number = 0;
  if (launcher.name == "baguarun" && launcher.find("nproc_per_node") == nullptr) {
    add_problem(preparation, Kind::invalid, launcher.place,
                "baguarun: `nproc_per_node`, the number of processes of each host, is missing",
                "write {baguarun: {nproc_per_node: 8, host_list: \"host1,host2\"}}");
  }
  const HostList hosts = hosts_of(launcher);
  if (!hosts.problem.empty()) {
    add_problem(preparation, Kind::invalid, hosts.place, hosts.problem, hosts.remedy);
  } else {
    name_hosts(launcher, launch);
  }
  int64_t ssh_port = 0;
  read_port(preparation, launcher, "ssh_port", ssh_port);
  read_port(preparation, launcher, "master_port", launch.master_port);
  read_port(preparation, launcher, "bagua_service_port", launch.service_port);
  check_node_rank(preparation, launcher);
  read_address(preparation, launcher);
  if (const PlainValue* const level = argument_of_bagua(launcher, "autotune_level", number);
      level != nullptr && number != 0) {
    add_problem(preparation, Kind::unsupported, level->place,
                "Bagua's autotuning is not modelled: it changes the size of buckets as it runs",
                "write autotune_level: 0, and set bucket_size_mb of BaguaStrategy");
  }
  const PlainValue* const net = launcher.find("enable_bagua_net");
  if (net != nullptr && net->get_if<bool>() != nullptr && *net->get_if<bool>()) {
    add_problem(preparation, Kind::unsupported, net->place,
                "Bagua-Net, which sends over several TCP connections, is not modelled",
                "leave enable_bagua_net out");
  }
  if (const PlainValue* const size = argument_of_bagua(launcher, "default_bucket_size", number);
      size != nullptr && number < 1) {
    add_problem(preparation, Kind::invalid, size->place,
                fmt::format("`default_bucket_size` is {} bytes", number), "at least 1");
  }
}

}  // namespace lockstep
