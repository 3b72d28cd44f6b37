#include <catch2/catch.hpp>
#include <map>

#include "backend/process/environment.hpp"

using namespace lockstep::backend;

namespace process_place_test {

namespace {

ProcessPlace place_of_variables(const std::map<std::string, std::string>& variables) {
  return place_from([&variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

TEST_CASE("torchrun's variables say where a process stands") {
  const ProcessPlace place = place_of_variables({{"RANK", "5"},
                                                 {"WORLD_SIZE", "8"},
                                                 {"LOCAL_RANK", "1"},
                                                 {"MASTER_ADDR", "node-0"},
                                                 {"MASTER_PORT", "29500"},
                                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  CHECK(place.rank == 5);
  CHECK(place.world_size == 8);
  CHECK(place.local_rank == 1);
  CHECK(place.master_address == "node-0");
  CHECK(place.master_port == 29500);
  CHECK(place.agent_hosts_store);
  CHECK(place.starter == "torchrun");
}

TEST_CASE("mpirun and srun have names of their own, and torchrun's win") {
  const ProcessPlace mpi = place_of_variables({{"OMPI_COMM_WORLD_RANK", "1"},
                                               {"OMPI_COMM_WORLD_SIZE", "2"},
                                               {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                               {"MASTER_PORT", "4000"}});
  CHECK(mpi.starter == "mpirun");
  CHECK(mpi.master_address == "127.0.0.1");
  const std::map<std::string, std::string> slurm = {
      {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "16003"}};
  CHECK(place_of_variables(slurm).starter == "srun");
  CHECK(place_of_variables(slurm).master_port == 49155);  // 49152 + 16003 mod 16000
  auto both = slurm;
  both["RANK"] = "0";
  both["WORLD_SIZE"] = "1";
  CHECK(place_of_variables(both).starter == "torchrun");
}

TEST_CASE("variables that cannot be meant are refused") {
  CHECK_THROWS_AS(place_of_variables({}), EnvironmentError);
  CHECK_THROWS_AS(place_of_variables({{"RANK", "0"}}), EnvironmentError);
  CHECK_THROWS_AS(place_of_variables({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
                  EnvironmentError);
  CHECK_THROWS_AS(place_of_variables({{"RANK", "0,1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
                  EnvironmentError);
  CHECK_THROWS_AS(place_of_variables({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), EnvironmentError);
  CHECK_THROWS_AS(
      place_of_variables({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}),
      EnvironmentError);
  CHECK_THROWS_WITH(
      place_of_variables(
          {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", ""}, {"MASTER_PORT", "4000"}}),
      Catch::Contains("MASTER_ADDR is empty"));
}

}  // namespace process_place_test
