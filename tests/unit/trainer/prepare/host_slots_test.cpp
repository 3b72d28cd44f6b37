#include "model/trainer/prepare/host_slots.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace host_slots_test {

namespace {

Object launcher_of(const std::string& text) {
  return *scenario_of("version: 1\ntrainer: {devices: 2}\nlauncher: " + text + "\n").launcher;
}

// "host1:4 host2:2", or what is wrong.
std::string told(const std::string& launcher) {
  const HostList list = hosts_of(launcher_of(launcher));
  if (!list.problem.empty()) {
    return list.problem;
  }
  std::string text;
  for (const HostSlots& host : list.hosts) {
    text += (text.empty() ? "" : " ") + host.name + ":" + std::to_string(host.slots);
  }
  return text;
}

RanksOfNodes filled(const std::string& launcher, int64_t processes) {
  return fill_hosts(hosts_of(launcher_of(launcher)), processes);
}

}  // namespace

// horovod/runner/common/util/hosts.py, parse_hosts_and_slots.
TEST_CASE("hosts are a text, a list of texts, of slots, or of maps") {
  CHECK(told("{horovodrun: {np: 4, hosts: \"host1:4,host2:2\"}}") == "host1:4 host2:2");
  CHECK(told("{horovodrun: {np: 4, hosts: \"10.0.0.1:4, 10.0.0.2:2\"}}") ==
        "10.0.0.1:4 10.0.0.2:2");
  CHECK(told("{horovodrun: {np: 4, hosts: [host1:4, host2:2]}}") == "host1:4 host2:2");
  CHECK(told("{horovodrun: {np: 4, hosts: [4, 2]}}") == "node0:4 node1:2");
  CHECK(told("{horovodrun: {np: 4, hosts: [{host1: 4}, {host2: 2}]}}") == "host1:4 host2:2");
  CHECK(told("{horovodrun: {np: 4}}").empty());
}

TEST_CASE("horovodrun's hosts have slots, and each host is given once") {
  CHECK(told("{horovodrun: {np: 4, hosts: \"host1,host2:2\"}}") ==
        "horovodrun: `host1` is not HOST:SLOTS");
  CHECK(told("{horovodrun: {np: 4, hosts: \"host1:four\"}}") ==
        "horovodrun: `host1:four` is not HOST:SLOTS");
  CHECK(told("{horovodrun: {np: 4, hosts: \"host1:0,host2:4\"}}") ==
        "horovodrun: the host host1 has 0 slots");
  CHECK(told("{horovodrun: {np: 4, hosts: \"host1:-2\"}}") ==
        "horovodrun: the host host1 has -2 slots");
  CHECK(told("{horovodrun: {np: 4, hosts: [4, 0]}}") == "horovodrun: the host node1 has 0 slots");
  CHECK(told("{horovodrun: {np: 4, hosts: \"host1:2,host1:2\"}}") ==
        "horovodrun: the host host1 is given twice");
  CHECK(told("{horovodrun: {np: 4, hosts: \":4\"}}") == "horovodrun: a host has no name");
  CHECK(told("{horovodrun: {np: 4, hosts: \"a b:4\"}}") ==
        "horovodrun: `a b` is no name of a host");
  CHECK(told("{horovodrun: {np: 4, hosts: []}}") == "horovodrun: no host is given");
  CHECK(told("{horovodrun: {np: 4, hosts: 4}}") ==
        "horovodrun: `4` is neither a text nor a list of hosts");
}

// mpirun(1) of Open MPI: "-H aa,bb" has one slot each, and "-H aa,aa" two on aa.
TEST_CASE("mpirun's hosts have one slot, and add up") {
  CHECK(told("{mpirun: {np: 2, hosts: \"aa,bb\"}}") == "aa:1 bb:1");
  CHECK(told("{mpirun: {np: 4, hosts: \"aa,bb:2,aa\"}}") == "aa:2 bb:2");
}

// baguarun.py: a name per host; nproc_per_node says how many processes each has.
TEST_CASE("Bagua's hosts are names") {
  CHECK(told("{baguarun: {nproc_per_node: 8, host_list: \"host1,host2\"}}") == "host1:8 host2:8");
  CHECK(told("{baguarun: {nproc_per_node: 8, hosts: [8, 8]}}") == "node0:8 node1:8");
  CHECK(told("{baguarun: {nproc_per_node: 8, hosts: [8, 4]}}") ==
        "baguarun: it starts 8 processes on every host, and a host is given 4");
  CHECK(told("{baguarun: {nproc_per_node: 8, host_list: \"host1:8\"}}") ==
        "baguarun: `host1:8` is no name of a host: nproc_per_node says how many processes each "
        "has");
  CHECK(told("{baguarun: {nproc_per_node: 8, host_list: \"host1,host1\"}}") ==
        "baguarun: the host host1 is given twice");
  CHECK(told("{baguarun: {nproc_per_node: 8, host_list: a, hosts: [b]}}") ==
        "baguarun: `hosts` and `host_list` are both given");
}

// get_host_assignments: one host after the other, until all processes have a place.
TEST_CASE("hosts are filled one after the other") {
  const std::string hosts = "{horovodrun: {np: 6, hosts: \"host1:1,host2:2,host3:3\"}}";
  CHECK(filled(hosts, 6) == RanksOfNodes{1, 2, 3});
  CHECK(filled(hosts, 5) == RanksOfNodes{1, 2, 2});
  CHECK(filled(hosts, 3) == RanksOfNodes{1, 2});
}

TEST_CASE("a rank's position on nodes of different sizes") {
  const RanksOfNodes nodes{1, 2, 3};
  CHECK(position_on_node(nodes, 0).node == 0);
  CHECK(position_on_node(nodes, 2).node == 1);
  CHECK(position_on_node(nodes, 2).local_rank == 1);
  CHECK(position_on_node(nodes, 2).local_world_size == 2);
  CHECK(position_on_node(nodes, 5).node == 2);
  CHECK(position_on_node(nodes, 5).local_rank == 2);
  CHECK(position_on_node(nodes, 5).local_world_size == 3);
}

}  // namespace host_slots_test
