// Launchers with hosts of their own, and the arguments of torchrun and of Bagua's launchers.
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "model/program/run.hpp"
#include "model/trainer/prepare/launch.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace launchers_test {

namespace {

Preparation prepared(const std::string& text) {
  return prepare(scenario_of(text), standard_strategies());
}

std::string horovod(const std::string& launcher, const std::string& devices = "1",
                    const std::string& version = "1.9") {
  return "version: 1\nversions: {lightning: \"" + version +
         "\"}\ncluster: {preset: dgx-a100, nodes: 3}\n"
         "trainer: {accelerator: gpu, devices: " +
         devices + ", strategy: horovod, max_epochs: 1}\nlauncher: " + launcher + "\n";
}

std::string torchrun(const std::string& arguments, int nodes = 1) {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 4, mtbf: 90 d}\n"
         "trainer: {accelerator: gpu, devices: 2, num_nodes: " +
         std::to_string(nodes) +
         ", strategy: ddp, max_epochs: 1}\nlauncher: {torchrun: {nproc_per_node: 2, " + arguments +
         "}}\n";
}

std::string bagua(const std::string& launcher, int nodes) {
  return "version: 1\nversions: {lightning: \"1.9\"}\ncluster: {preset: dgx-a100, nodes: 2}\n"
         "trainer: {accelerator: gpu, devices: 8, num_nodes: " +
         std::to_string(nodes) + ", strategy: bagua, max_epochs: 1}\nlauncher: " + launcher + "\n";
}

/// "LS501 message", of all that is not a note.
std::vector<std::string> told(const std::string& text) {
  std::vector<std::string> all;
  for (const Problem& problem : prepared(text).problems) {
    if (problem.kind != Problem::Kind::note) {
      all.push_back(problem.code + (problem.code.empty() ? "" : " ") + problem.message);
    }
  }
  return all;
}
using Told = std::vector<std::string>;

std::map<std::string, std::string> environment(const Launch& launch, int32_t rank) {
  std::map<std::string, std::string> all;
  for (const EnvironmentEntry& entry : environment_of(launch, rank)) {
    all[entry.name] = entry.value;
  }
  return all;
}

}  // namespace

// accelerator_connector.py of 1.6 to 1.9, _handle_horovod: hvd.local_size() devices, whatever the
// Trainer asks for; its documentation writes devices=1.
TEST_CASE("Horovod's processes are those of its launcher, not of the Trainer") {
  const Preparation preparation =
      prepared(horovod("{horovodrun: {np: 8, hosts: \"host1:4,host2:4\"}}"));
  CHECK(preparation.runnable());
  CHECK(preparation.options.world_size == 8);
  CHECK(preparation.options.ranks_per_node == 4);
  CHECK(preparation.options.ranks_of_nodes.empty());
  CHECK(preparation.placement.devices == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(told(horovod("{horovodrun: {np: 8, hosts: \"host1:4,host2:4\"}}", "2")) ==
        Told{"LS502 `devices` is ignored: horovodrun starts 4 processes on a node"});
  CHECK(told(horovod("{horovodrun: {np: 8, hosts: \"host1:4,host2:4\"}}", "4")).empty());
  CHECK(told(horovod("{horovodrun: {np: 8, hosts: \"host1:4,host2:4\"}}", "-1")).empty());
}

// 1.2 to 1.5, check_horovod: num_gpus > 1 raises.
TEST_CASE("before 1.6 Horovod refuses several GPUs of the Trainer") {
  CHECK(told(horovod("{horovodrun: {np: 4}}", "4", "1.5")) ==
        Told{"LS501 Horovod does not support setting the number of GPUs (4): horovodrun says how "
             "many processes there are"});
  CHECK(told(horovod("{horovodrun: {np: 4}}", "1", "1.5")).empty());
  const std::string alone =
      "version: 1\nversions: {lightning: \"1.5\"}\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "trainer: {accelerator: horovod, max_epochs: 1, gpus: ";
  CHECK(told(alone + "2}\n") ==
        Told{"LS501 Horovod does not support setting the number of GPUs (2): horovodrun says how "
             "many processes there are"});
  CHECK(told(alone + "1}\n").empty());
}

// horovod/common/gloo/gloo_context.cc reads HOROVOD_RANK and HOROVOD_SIZE, which torchrun does not
// set; their defaults are 0 and 1.
TEST_CASE("torchrun does not start Horovod's ranks") {
  CHECK(told(horovod("{torchrun: {nproc_per_node: 4}}", "4")) ==
        Told{"LS501 torchrun does not set what Horovod reads: each process would train alone, as "
             "rank 0 of 1"});
}

// hosts.py, get_host_assignments, by hand for -np 6 -H host1:1,host2:2,host3:3.
TEST_CASE("uneven hosts give each rank the place that horovodrun gives it") {
  const Preparation preparation =
      prepared(horovod("{horovodrun: {np: 6, hosts: \"host1:1,host2:2,host3:3\"}}"));
  REQUIRE(preparation.runnable());
  CHECK(preparation.options.world_size == 6);
  CHECK(preparation.options.ranks_of_nodes == RanksOfNodes{1, 2, 3});
  const Launch& launch = preparation.placement.launch;
  const int32_t nodes[] = {0, 1, 1, 2, 2, 2};
  const int32_t local_ranks[] = {0, 0, 1, 0, 1, 2};
  const int32_t local_sizes[] = {1, 2, 2, 3, 3, 3};
  const char* cross_ranks[] = {"0", "1", "0", "2", "1", "0"};
  const char* cross_sizes[] = {"3", "3", "2", "3", "2", "1"};
  for (int32_t rank = 0; rank < 6; ++rank) {
    const Place place = place_of(preparation.options, rank);
    CHECK(place.node == nodes[rank]);
    CHECK(place.local_rank == local_ranks[rank]);
    CHECK(place.local_world_size == local_sizes[rank]);
    const auto variables = environment(launch, rank);
    CHECK(variables.at("HOROVOD_LOCAL_SIZE") == std::to_string(local_sizes[rank]));
    CHECK(variables.at("HOROVOD_CROSS_RANK") == cross_ranks[rank]);
    CHECK(variables.at("HOROVOD_CROSS_SIZE") == cross_sizes[rank]);
    CHECK(variables.at("HOROVOD_HOSTNAME") == "host" + std::to_string(nodes[rank] + 1));
  }
  CHECK(start_line(launch, 0) == "horovodrun -np 6 -H host1:1,host2:2,host3:3 python train.py");
}

TEST_CASE("hosts without room, without slots or without GPUs are refused with a reason") {
  CHECK(told(horovod("{horovodrun: {np: 9, hosts: \"host1:4,host2:4\"}}")) ==
        Told{"LS501 horovodrun: 9 processes are requested, and the hosts have 8 slots"});
  CHECK(told(horovod("{horovodrun: {hosts: \"host1:4\"}}")) ==
        Told{"horovodrun: `np`, the number of processes, is missing"});
  CHECK(told(horovod("{horovodrun: {np: 4, hosts: \"host1:0\"}}")) ==
        Told{"horovodrun: the host host1 has 0 slots"});
  CHECK(told(horovod("{horovodrun: {np: 0}}")) == Told{"horovodrun starts no process: `np` is 0"});
  CHECK(told(horovod("{horovodrun: {np: 9}}")) ==
        Told{"LS501 horovodrun starts 9 processes on a host where 8 GPUs are visible: each takes "
             "the GPU of its local rank"});
  CHECK(
      told("version: 1\nversions: {lightning: \"1.9\"}\ncluster: {preset: dgx-a100, nodes: 2}\n"
           "trainer: {accelerator: gpu, devices: 1, max_epochs: 1, strategy: "
           "{HorovodStrategy: {op: adasum}}}\nlauncher: {horovodrun: {np: 3, hosts: [1, 2]}}\n") ==
      Told{"Adasum on hosts with different numbers of processes is not modelled"});
}

// mpirun(1): without -np one process per slot.
TEST_CASE("mpirun takes hosts, with Horovod and with Lightning 2") {
  const Preparation preparation = prepared(horovod("{mpirun: {hosts: \"a:2,b:1\"}}"));
  REQUIRE(preparation.runnable());
  CHECK(preparation.options.ranks_of_nodes == RanksOfNodes{2, 1});
  CHECK(environment(preparation.placement.launch, 2).at("OMPI_COMM_WORLD_LOCAL_SIZE") == "1");
  const std::string ddp =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 2}\ntrainer: {accelerator: gpu, devices: 2, "
      "num_nodes: 2, strategy: ddp, max_epochs: 1}\nlauncher: {mpirun: ";
  CHECK(told(ddp + "{np: 4, hosts: \"a:2,b:2\"}}\n").empty());
  CHECK(told(ddp + "{np: 4, hosts: \"a:3,b:1\"}}\n") ==
        Told{"LS501 mpirun starts 4 processes on 2 nodes (3, 1), but the trainer expects 2 on each "
             "of 2 nodes"});
  CHECK(told(ddp + "{hosts: \"a:2,b:2\"}}\n").empty());
}

TEST_CASE("ranks of a program without a trainer lie on the launcher's hosts") {
  const std::string bare =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 3, ranks: 6}\nprogram: {main: [barrier]}\n"
      "launcher: {horovodrun: ";
  const Preparation preparation = prepared(bare + "{np: 6, hosts: \"a:1,b:2,c:3\"}}\n");
  REQUIRE(preparation.runnable());
  CHECK(preparation.options.ranks_of_nodes == RanksOfNodes{1, 2, 3});
  CHECK(told(bare + "{np: 5, hosts: \"a:1,b:2,c:3\"}}\n").size() == 1);
}

TEST_CASE("Bagua's launchers have arguments of their own") {
  CHECK(
      told(bagua("{baguarun: {nproc_per_node: 8, host_list: \"a,b\", ssh_port: 22}}", 2)).empty());
  CHECK(told(bagua("{baguarun: {nproc_per_node: 8, host_list: \"a\"}}", 2))
            .front()
            .starts_with("LS501 baguarun starts 8 processes on 1 node"));
  CHECK(told(bagua("{baguarun: {host_list: \"a,b\"}}", 2)) ==
        Told{"baguarun: `nproc_per_node`, the number of processes of each host, is missing"});
  CHECK(told(bagua("{baguarun: {nproc_per_node: 8, host_list: \"a,a\"}}", 2)) ==
        Told{"baguarun: the host a is given twice"});
  CHECK(told(bagua("{baguarun: {nproc_per_node: 8, ssh_port: 70000}}", 1)) ==
        Told{"`ssh_port` is 70000, which is no port"});
  const std::string module = "{bagua.distributed.launch: {nproc_per_node: 8, nnodes: 2";
  // bagua/distributed/launch.py: --master_addr is 127.0.0.1 by default.
  CHECK(told(bagua(module + "}}", 2)).front().starts_with("LS501 `master_addr` is 127.0.0.1 by "));
  CHECK(told(bagua(module + ", master_addr: a}}", 2)).empty());
  CHECK(told(bagua(module + ", master_addr: localhost}}", 2)).front().starts_with("LS501"));
  CHECK(told(bagua(module + ", master_addr: a, node_rank: 1}}", 2))
            .front()
            .starts_with("`node_rank` differs"));
  CHECK(told(bagua(module + ", master_addr: a, autotune_level: 1}}", 2)) ==
        Told{"Bagua's autotuning is not modelled: it changes the size of buckets as it runs"});
  CHECK(told(bagua(module + ", master_addr: a, enable_bagua_net: true}}", 2)) ==
        Told{"Bagua-Net, which sends over several TCP connections, is not modelled"});
  CHECK(told(bagua(module + ", master_addr: a, enable_bagua_net: false}}", 2)).empty());
  const Preparation preparation =
      prepared(bagua(module + ", master_addr: a, master_port: 1234}}", 2));
  const auto variables = environment(preparation.placement.launch, 9);
  CHECK(variables.at("MASTER_ADDR") == "a");
  CHECK(variables.at("MASTER_PORT") == "1234");
  CHECK(start_line(preparation.placement.launch, 9) ==
        "python -m bagua.distributed.launch --nnodes=2 --node_rank=1 --master_addr=a "
        "--nproc_per_node=8 train.py");
}

// torch/distributed/run.py and elastic/rendezvous/.
TEST_CASE("torchrun's rendezvous is checked") {
  CHECK(told(torchrun("standalone: true")).empty());
  CHECK(told(torchrun("standalone: true, rdzv_endpoint: \"a:1\"")) ==
        Told{"LS502 `rdzv_endpoint` is ignored: `standalone` sets it"});
  CHECK(told(torchrun("standalone: true, nnodes: 2", 2))
            .front()
            .starts_with(
                "LS501 with `standalone` the agent of each node meets at its own localhost"));
  CHECK(told(torchrun("rdzv_backend: c10")) == Told{"torchrun has no rendezvous backend `c10`"});
  CHECK(told(torchrun("rdzv_endpoint: \"a:b\"")) == Told{"`rdzv_endpoint: a:b` is not HOST:PORT"});
  const std::string c10d = "nnodes: 2, rdzv_backend: c10d, rdzv_endpoint: ";
  CHECK(told(torchrun(c10d + "\"node0:29400\"", 2)).empty());
  CHECK(told(torchrun(c10d + "localhost", 2)).front().starts_with("LS501 `rdzv_endpoint` is"));
  CHECK(told(torchrun("nnodes: 2, rdzv_backend: c10d", 2))
            .front()
            .starts_with("LS501 `rdzv_endpoint` is missing"));
  CHECK(told(torchrun("rdzv_backend: static, rdzv_endpoint: node0"))
            .front()
            .starts_with("LS501 torchrun raises: the endpoint node0 has no port"));
}

// static_tcp_rendezvous.py: the world is the maximum, and num_nodes_waiting is always 0.
TEST_CASE("the static rendezvous waits for the maximum, and coordinates no restart") {
  CHECK(told(torchrun("nnodes: \"1:2\", rdzv_backend: static", 2)) ==
        Told{"LS502 the minimum of `nnodes: 1:2` is ignored: the static rendezvous waits for 2 "
             "nodes"});
  CHECK(told(torchrun("max_restarts: 2, rdzv_backend: static")).empty());
  CHECK(told(torchrun("nnodes: 2, max_restarts: 2, rdzv_backend: static", 2))
            .front()
            .starts_with("restarts on several nodes with the static rendezvous are not modelled"));
}

TEST_CASE("torchrun waits for nodes that the cluster does not have") {
  CHECK(
      told(torchrun("nnodes: \"6:8\", max_restarts: 3", 2)) ==
      Told{"LS501 `nnodes: 6:8` asks for at least 6 nodes, and the cluster has 4: the agents wait "
           "10 min for others, and end"});
}

TEST_CASE("a wrong range of nodes says nothing about failures") {
  for (const char* nodes : {"nnodes: \"4:2\"", "nnodes: \"x\"", "nnodes: 8"}) {
    const Preparation preparation = prepared(torchrun(std::string(nodes) + ", max_restarts: 3"));
    CHECK_FALSE(preparation.runnable());
    for (const Problem& problem : preparation.problems) {
      CHECK(problem.message.find("mtbf") == std::string::npos);
    }
  }
}

}  // namespace launchers_test
