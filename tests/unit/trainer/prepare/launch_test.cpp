#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "model/trainer/prepare/launch.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace launch_test {

namespace {

std::map<std::string, std::string> variables(const Launch& launch, int32_t rank) {
  std::map<std::string, std::string> all;
  for (const EnvironmentEntry& entry : environment_of(launch, rank)) {
    all[entry.name] = entry.value;
  }
  return all;
}

Launch two_nodes(const std::string& launcher) {
  Launch launch;
  launch.launcher = launcher;
  launch.nodes = 2;
  launch.processes_per_node = 4;
  return launch;
}

std::vector<std::string> codes(const std::string& text) {
  std::vector<std::string> all;
  for (const Problem& problem : prepare(scenario_of(text), standard_strategies()).problems) {
    if (problem.stops()) {
      all.push_back(problem.code.empty() ? problem.message : problem.code);
    }
  }
  return all;
}

const std::string head = "version: 1\ncluster: {preset: dgx-a100, nodes: 2}\n";
const std::string eight =
    "trainer: {accelerator: gpu, devices: 4, num_nodes: 2, strategy: ddp, max_epochs: 1}\n";
using Codes = std::vector<std::string>;

}  // namespace

// subprocess_script.py: the launcher sets no RANK.
TEST_CASE("Lightning's own launcher sets node, local rank and world size") {
  const auto sixth = variables(two_nodes("lightning"), 5);
  CHECK(sixth.at("NODE_RANK") == "1");
  CHECK(sixth.at("LOCAL_RANK") == "1");
  CHECK(sixth.at("WORLD_SIZE") == "8");
  CHECK(sixth.at("MASTER_ADDR") == "node0");
  CHECK(sixth.count("RANK") == 0);
}

TEST_CASE("spawned processes learn their rank as an argument") {
  Launch launch = two_nodes("lightning");
  launch.nodes = 1;
  launch.start = StartMethod::spawn;
  const auto third = variables(launch, 2);
  CHECK(third.at("MASTER_ADDR") == "127.0.0.1");
  CHECK(third.count("LOCAL_RANK") == 0);
  CHECK(start_line(launch, 2) == "(the main process of its node spawns it)");
}

// local_elastic_agent.py: GROUP_RANK is the node's.
TEST_CASE("torchrun sets all ranks and sizes") {
  const auto sixth = variables(two_nodes("torchrun"), 5);
  CHECK(sixth.at("RANK") == "5");
  CHECK(sixth.at("LOCAL_RANK") == "1");
  CHECK(sixth.at("GROUP_RANK") == "1");
  CHECK(sixth.at("WORLD_SIZE") == "8");
  CHECK(sixth.at("LOCAL_WORLD_SIZE") == "4");
  CHECK(sixth.at("MASTER_PORT") == "29500");
  CHECK(start_line(two_nodes("torchrun"), 5) ==
        "torchrun --nnodes=2 --node-rank=1 --master-addr=node0 --nproc-per-node=4 train.py");
}

TEST_CASE("srun, mpirun, horovodrun and baguarun have their own names for a rank's place") {
  const auto slurm = variables(two_nodes("srun"), 6);
  CHECK(slurm.at("SLURM_PROCID") == "6");
  CHECK(slurm.at("SLURM_LOCALID") == "2");
  CHECK(slurm.at("SLURM_NODEID") == "1");
  CHECK(slurm.at("SLURM_NTASKS") == "8");
  const auto mpi = variables(two_nodes("mpirun"), 6);
  CHECK(mpi.at("OMPI_COMM_WORLD_RANK") == "6");
  CHECK(mpi.at("OMPI_COMM_WORLD_LOCAL_RANK") == "2");
  CHECK(mpi.at("OMPI_COMM_WORLD_SIZE") == "8");
  const auto horovod = variables(two_nodes("horovodrun"), 6);
  CHECK(horovod.at("HOROVOD_RANK") == "6");
  CHECK(horovod.at("HOROVOD_CROSS_RANK") == "1");
  CHECK(horovod.at("HOROVOD_LOCAL_SIZE") == "4");
  const auto bagua = variables(two_nodes("baguarun"), 6);
  CHECK(bagua.at("NODE_RANK") == "1");
  CHECK(bagua.at("BAGUA_SERVICE_PORT") == "29501");
  CHECK(start_line(two_nodes("horovodrun"), 0) ==
        "horovodrun -np 8 -H node0:4,node1:4 python train.py");
}

TEST_CASE("a launcher that starts a different number of processes is refused") {
  CHECK(codes(head + eight + "launcher: {torchrun: {nnodes: 2, nproc_per_node: 4}}\n").empty());
  CHECK(
      codes(head + eight + "launcher: {torchrun: {nnodes: \"1:4\", nproc_per_node: 4}}\n").empty());
  CHECK(codes(head + eight + "launcher: {srun: {nodes: 2, ntasks_per_node: 4}}\n").empty());
  CHECK(codes(head + eight + "launcher: {mpirun: {np: 8}}\n").empty());
  for (const char* launcher :
       {"{torchrun: {nnodes: 2, nproc_per_node: 8}}", "{torchrun: {nnodes: 1, nproc_per_node: 8}}",
        "{torchrun: {nnodes: \"3:4\", nproc_per_node: 4}}", "torchrun", "{mpirun: {np: 4}}",
        "{srun: {nodes: 4, ntasks_per_node: 2}}"}) {
    INFO(launcher);
    CHECK(codes(head + eight + "launcher: " + launcher + "\n") == Codes{"LS501"});
  }
  CHECK(codes("version: 1\ncluster: {ranks: 2}\nlauncher: {mpirun: {np: 3}}\n"
              "program: {main: [barrier]}\n") == Codes{"LS501"});
}

TEST_CASE("processes that would be started twice are a contradiction") {
  CHECK(codes(head + eight + "versions: {lightning: \"1.6\"}\nlauncher: {mpirun: {np: 8}}\n") ==
        Codes{"LS501"});
  CHECK(codes(head + eight + "launcher: {horovodrun: {np: 8, hosts: [4, 4]}}\n") == Codes{"LS501"});
  CHECK(codes("version: 1\ncluster: {preset: dgx-a100}\n"
              "trainer: {accelerator: gpu, devices: 4, strategy: ddp_spawn}\n"
              "launcher: {torchrun: {nproc_per_node: 4}}\n") == Codes{"LS501"});
}

TEST_CASE("variables that contradict the processes are named with rank, value and what is due") {
  const Scenario scenario = scenario_of(
      "version: 1\ntrainer: {accelerator: gpu, devices: 3, strategy: ddp}\n"
      "env: {NODE_RANK: \"{rank}\", LOCAL_RANK: \"0\", MASTER_PORT: \"{29500 + rank}\", "
      "WORLD_SIZE: \"{world_size}\", MASTER_ADDR: localhost}\n");
  Launch launch;
  launch.processes_per_node = 3;
  const std::vector<EnvironmentFault> faults = environment_faults(scenario.env, launch);
  REQUIRE(faults.size() == 3);
  CHECK(faults[0].message == "NODE_RANK is 1 on rank 1 (should be 0), 2 on rank 2 (should be 0)");
  CHECK(faults[0].ranks == std::vector<int32_t>{1, 2});
  CHECK(faults[1].message == "LOCAL_RANK is 0 on rank 1 (should be 1), 0 on rank 2 (should be 2)");
  CHECK(faults[2].message.find("29501 on rank 1 (should be 29500 as on rank 0)") !=
        std::string::npos);
}

TEST_CASE("variables that fit are silent, and those without a meaning are noted") {
  const Preparation preparation =
      prepare(scenario_of(head + eight +
                          "env: {LOCAL_RANK: \"{local_rank}\", NODE_RANK: \"{node_rank}\", "
                          "MASTER_PORT: 29500, NCCL_ALGO: Ring}\n"),
              standard_strategies());
  CHECK(preparation.runnable());
  REQUIRE(preparation.problems.size() == 1);
  CHECK(preparation.problems[0].kind == Problem::Kind::note);
  CHECK(preparation.problems[0].message.find("NCCL_ALGO") != std::string::npos);
}

TEST_CASE("an expression of a variable that has no value is an error of the file") {
  const Preparation preparation = prepare(
      scenario_of(head + eight + "env: {LOCAL_RANK: \"{1 // 0}\"}\n"), standard_strategies());
  REQUIRE(preparation.problems.size() == 1);
  CHECK(preparation.problems[0].kind == Problem::Kind::invalid);
}

// _parse_gpu_ids of 2.6 leaves out its check under torchelastic where one GPU is visible; the root
// device is parallel_devices[local_rank] all the same.
TEST_CASE("each rank must be shown the GPU that it is put on") {
  const auto told = [](const std::string& launcher, const std::string& devices,
                       const std::string& visible) {
    const Preparation preparation = prepare(
        scenario_of(
            "version: 1\ncluster: {preset: dgx-a100}\ntrainer: {accelerator: gpu, strategy: "
            "ddp, max_epochs: 1, devices: " +
            devices + "}\n" + launcher + "env: {CUDA_VISIBLE_DEVICES: \"" + visible + "\"}\n"),
        standard_strategies());
    return preparation.runnable() ? std::string() : preparation.problems.front().message;
  };
  const std::string torchrun = "launcher: {torchrun: {nproc_per_node: 2}}\n";
  const std::string srun = "launcher: {srun: {ntasks_per_node: 2}}\n";
  CHECK(told(torchrun, "2", "7,6").empty());
  CHECK(
      told(torchrun, "2", "{6 + local_rank},{7 - local_rank}") ==
      "ranks 0 and 1 both train on GPU 6, as CUDA_VISIBLE_DEVICES is 6,7 on the one and 7,6 on the "
      "other: NCCL finds a duplicate GPU");
  CHECK(told(torchrun, "2", "{7 - local_rank}") ==
        "CUDA_VISIBLE_DEVICES is 6 on rank 1: CUDA shows it 1 GPU, but it trains on cuda:1");
  CHECK(told(torchrun, "2", "0,{1 + 7 * local_rank}") ==
        "CUDA_VISIBLE_DEVICES is 0,8 on rank 1: CUDA shows it 1 GPU, but it trains on cuda:1");
  CHECK(told(srun, "2", "{local_rank},{local_rank + 7}") ==
        "CUDA_VISIBLE_DEVICES is 1,8 on rank 1: CUDA shows it 1 GPU, but the trainer asks for "
        "cuda:1");
  CHECK(told(srun, "\"0,1\"", "2,{3 + local_rank}").empty());
}

TEST_CASE("the GPUs of ranks are those that CUDA shows to each") {
  const Preparation preparation = prepare(
      scenario_of(
          "version: 1\ncluster: {preset: dgx-a100}\ntrainer: {accelerator: gpu, devices: 2, "
          "strategy: ddp, max_epochs: 1}\nlauncher: {torchrun: {nproc_per_node: 2}}\n"
          "env: {CUDA_VISIBLE_DEVICES: \"2,{3 + local_rank}\"}\n"),
      standard_strategies());
  CHECK(preparation.placement.devices == std::vector<int64_t>{2, 4});
}

TEST_CASE("Lightning 2 does not read the variable of the backend") {
  const std::string text =
      "version: 1\ntrainer: {accelerator: cpu, devices: 2, max_epochs: 1}\n"
      "env: {PL_TORCH_DISTRIBUTED_BACKEND: gloo}\nversions: {lightning: \"";
  CHECK(prepare(scenario_of(text + "1.6\"}\n"), standard_strategies()).problems.empty());
  const Preparation newer = prepare(scenario_of(text + "2.6\"}\n"), standard_strategies());
  REQUIRE(newer.problems.size() == 1);
  CHECK(newer.problems[0].kind == Problem::Kind::note);
}

// DDPSpawnStrategy of 1.7 to 1.9 takes spawn, its default, or fork.
TEST_CASE("the spawning class of Lightning 1 takes the ways to begin that it has") {
  const auto started = [](const std::string& method) {
    const Preparation preparation =
        prepare(scenario_of("version: 1\nversions: {lightning: \"1.9\"}\n"
                            "trainer: {accelerator: cpu, devices: 2, max_epochs: 1, strategy: "
                            "{DDPSpawnStrategy: {start_method: " +
                            method + "}}}\n"),
                standard_strategies());
    return preparation.runnable()
               ? std::to_string(static_cast<int>(preparation.placement.launch.start))
               : preparation.problems.front().message + "; " + preparation.problems.front().remedy;
  };
  CHECK(started("spawn") == std::to_string(static_cast<int>(StartMethod::spawn)));
  CHECK(started("fork") == std::to_string(static_cast<int>(StartMethod::fork)));
  CHECK(started("popen") == "`start_method` cannot be popen; use spawn");
}

TEST_CASE("what cannot be pickled is refused under spawn, with its name, and fine under fork") {
  const std::string text =
      "version: 1\nmodel: {layers: [{Linear: [4, 2]}], input: [4], unpicklable: [transform]}\n"
      "trainer: {accelerator: cpu, devices: 2, max_epochs: 1, strategy: ";
  CHECK(codes(text + "ddp_spawn}\n") == Codes{"LS501"});
  for (const char* strategy : {"ddp", "ddp_fork", "ddp_notebook"}) {
    CHECK(codes(text + strategy + "}\n").empty());
  }
}

TEST_CASE("a fork is refused once CUDA is initialised") {
  const std::string text =
      "version: 1\ntrainer: {accelerator: gpu, devices: 2, max_epochs: 1, strategy: ddp_notebook}\n"
      "launcher: notebook\nprogram: {main: ";
  CHECK(codes(text + "[{kernel: 1 ms}, fit]}\n") == Codes{"LS501"});
  CHECK(codes(text + "[fit, {kernel: 1 ms}]}\n").empty());
}

TEST_CASE("an address at which rank 0 is not found is refused where Lightning starts the nodes") {
  const auto found = [](const std::string& address, const std::string& more = "") {
    return codes(
        "version: 1\ncluster: {preset: dgx-a100, nodes: 2}\n"
        "trainer: {accelerator: gpu, devices: 8, num_nodes: 2, strategy: ddp}\n"
        "env: {MASTER_ADDR: " +
        address + "}\n" + more);
  };
  CHECK(found("localhost") == Codes{"LS501"});
  CHECK(found("\"127.0.0.1\"") == Codes{"LS501"});
  CHECK(found("node1") == Codes{"LS501"});
  CHECK(found("node0").empty());
  CHECK(found("host-of-mine").empty());
  CHECK(found("localhost", "launcher: {torchrun: {nnodes: 2, nproc_per_node: 8}}\n").empty());
  CHECK(codes("version: 1\ncluster: {preset: dgx-a100}\n"
              "trainer: {accelerator: gpu, devices: 8, strategy: ddp}\n"
              "env: {MASTER_ADDR: localhost}\n")
            .empty());
}

TEST_CASE("processes that are there already need a port that all of them know") {
  const auto found = [](const std::string& env) {
    return codes(
        "version: 1\ncluster: {preset: dgx-a100}\n"
        "trainer: {accelerator: gpu, devices: 2, strategy: ddp}\nenv: {LOCAL_RANK: "
        "\"{rank}\"" +
        env + "}\n");
  };
  CHECK(found("") == Codes{"LS501"});
  CHECK(found(", MASTER_PORT: \"29500\"").empty());
}

}  // namespace launch_test
