// Real runs: one process per rank, compared with their simulation; without LibTorch, how to get it.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace exec_test {

namespace {

std::string scenario(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/" + name;
}

bool has(const Ended& ended, const std::string& text) {
  return ended.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("doctor says what is there and exits 0") {
  const Ended ended = run_program("doctor");
  CHECK(ended.code == 0);
  CHECK(has(ended, "lockstep-rank"));
  CHECK(run_program("doctor --format json").output.front() == '{');
}

TEST_CASE("GPUs that are asked for and missing are reported with a remedy") {
  // No NVML is found below this folder, whatever this machine has: the loader looks here first, and
  // the empty file is no library.
  const Folder folder;
  folder.write("libnvidia-ml.so.1", "");
  const Ended ended = run_program("exec --device cuda " + scenario("accumulation.yaml:accumulated"),
                                  "2>&1", "", "export LD_LIBRARY_PATH=" + folder.path() + "; ");
  INFO(ended.output);
  CHECK(ended.code == 5);
#ifdef LOCKSTEP_RANK_PROGRAM
  CHECK((has(ended, "no GPU found") || has(ended, "lockstep-rank-cuda was not found")));
#else
  CHECK(has(ended, "lockstep-rank was not found"));
#endif
  CHECK(has(ended, "   = "));
  CHECK(run_program("exec --device tpu " + scenario("accumulation.yaml")).code == 2);
}

#ifdef LOCKSTEP_RANK_PROGRAM

namespace {

/// An exec whose temporary files, had it any left, would be in `temporary`.
Ended exec_into(const Folder& temporary, const std::string& arguments) {
  return run_program("exec " + arguments, "2>&1", "", "export TMPDIR=" + temporary.path() + "; ");
}

/// Shell that starts ranks 0 and 1 in the background, as a launcher of others does; they report
/// into `folder`. $! is rank 1.
std::string two_ranks(const std::string& scenario, const Folder& folder,
                      const std::string& options = "") {
  const std::string rank = std::string(LOCKSTEP_RANK_PROGRAM) + " " + scenario + " " + options +
                           " --report-folder " + folder.path() + " & ";
  return "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000)); RANK=0 " +
         rank + "RANK=1 " + rank;
}

}  // namespace

TEST_CASE("the programs that are tried on a GPU equal their simulation on the CPU") {
  const std::string checks = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/gpu/";
  for (const char* name :
       {"operations.yaml:reductions", "operations.yaml:gathers", "operations.yaml:messages",
        "trainings.yaml:single", "trainings.yaml:ddp_two", "trainings.yaml:layers",
        "trainings.yaml:dp"}) {
    const Ended ended = run_program("exec --device cpu " + checks + name);
    INFO(name << ended.output);
    CHECK(ended.code == 0);
    CHECK(has(ended, "outcome equal"));
    CHECK(has(ended, "values equal"));
  }
  const Ended hung =
      run_program("exec --device cpu --hang-after 1 " + checks + "operations.yaml:left_out");
  CHECK(hung.code == 1);
  CHECK(has(hung, "outcome equal"));
}

TEST_CASE("automatic says that it took the CPU, and why") {
  const Ended ended = run_program("exec " + scenario("parameter-server.yaml"));
  CHECK(ended.code == 0);
  CHECK(has(ended, "on the CPU: the scenario names no GPU"));
}

TEST_CASE("a training for real equals its simulation") {
  const Folder temporary;
  const Ended ended = exec_into(temporary, scenario("accumulation.yaml:accumulated"));
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(has(ended, "outcome equal"));
  CHECK(has(ended, "calls equal"));
  CHECK(has(ended, "values equal"));
  CHECK(has(ended, "memory equal"));
  CHECK(std::filesystem::is_empty(temporary.path()));
}

TEST_CASE("layers of decoders and of images are computed for real as in the simulation") {
  for (const char* name :
       {"tiny-llama.yaml:ddp", "tiny-llama.yaml:recomputed", "layers-of-images.yaml:unet",
        "layers-of-images.yaml:vision_transformer", "layers-of-images.yaml:recurrent"}) {
    const Folder temporary;
    const Ended ended = exec_into(temporary, scenario(std::string("networks/") + name));
    INFO(name << "\n" << ended.output);
    CHECK(ended.code == 0);
    for (const char* compared : {"outcome", "calls", "values", "memory"}) {
      CHECK(has(ended, std::string(compared) + " equal"));
    }
  }
}

TEST_CASE("a layer that the simulation has no arithmetic for is computed for real and named") {
  const Folder folder;
  const std::string file =
      folder.write("dropout.yaml",
                   "version: 1\ncluster: {gpu: cpu, gpus: 2}\n"
                   "model: {input: [4], layers: [{Linear: [4, 8]}, {Dropout: {p: 0.5}}, {Linear: "
                   "[8, 2]}], loss: MSELoss}\n"
                   "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 2}\n"
                   "data: {train: {samples: 16, batch_size: 4}}\n"
                   "program:\n  training_step: [{log: {name: train_loss, value: loss}}]\n"
                   "expect: [metric train_loss > 0]\n");
  const Ended ended = run_program("exec " + file);
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(has(ended, "outcome equal"));
  CHECK(has(ended, "calls equal"));
  CHECK(has(ended, "values not compared (layer `1` (dropout) has no reference arithmetic"));
  CHECK(has(ended, "1 of 1 met"));
}

TEST_CASE("mixed precision is computed for real and compared") {
  const Folder folder;
  const std::string file =
      folder.write("mixed.yaml",
                   "version: 1\ncluster: {gpus: 2}\n"
                   "model:\n  input: [4]\n  loss: MSELoss\n"
                   "  layers: [{Linear: [4, 8]}, {BatchNorm1d: [8]}, GELU, {Linear: [8, 2]}]\n"
                   "trainer: {devices: 2, strategy: ddp, max_steps: 2, precision: bf16-mixed}\n"
                   "data: {train: {samples: 16, batch_size: 4}}\n"
                   "program:\n  training_step: [{log: {name: train_loss, value: loss}}]\n"
                   "expect: [metric train_loss > 0]\n");
  const Ended ended = run_program("exec --device cpu " + file);
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(has(ended, "calls equal"));
  CHECK(has(ended, "values equal (within the rounding bound"));
  CHECK(has(ended, "memory equal"));
  CHECK(has(ended, "1 of 1 met"));
}

TEST_CASE("a real hang ends by its deadline, with the finding of the simulation") {
  const Folder temporary;
  const Ended ended =
      exec_into(temporary, "--hang-after 1 " + scenario("new-group-on-one-rank.yaml:members_only"));
  INFO(ended.output);
  CHECK(ended.code == 1);
  CHECK(has(ended, "error[LS101]: ranks 0-1 wait forever in new_group"));
  CHECK(has(ended, "outcome equal"));
  CHECK(std::filesystem::is_empty(temporary.path()));
}

TEST_CASE("a rank that is killed is named, and the others end") {
  // Waits in a recv that nobody answers, so that there is time to kill the other rank.
  const Folder folder;
  const std::string file = folder.write(
      "killed.yaml",
      "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\nprogram:\n  main:\n"
      "    - if: rank == 0\n      then: [{recv: {elements: 4, src: 1}}]\n"
      "      else: [{recv: {elements: 4, src: 0, tag: 7}}]\n");
  const Ended ended = run_program(
      "exec --hang-after 4 " + file, "2>&1", "",
      "(sleep 2; for p in $(pgrep -f 'lockstep-rank " + file +
          "'); do tr '\\0' '\\n' < /proc/$p/environ | grep -qx RANK=1 && kill -9 $p; done) & ");
  INFO(ended.output);
  CHECK(ended.code == 1);
  CHECK(has(ended, "rank 1"));
  CHECK(has(ended, "ended by signal 9"));
}

TEST_CASE("an interrupted run ends its ranks, reports how far they came and keeps their journals") {
  const Folder temporary;
  const Folder folder;
  // Each waits for a message that the other never sends: there is time to interrupt it.
  const std::string file = folder.write(
      "long.yaml",
      "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\nprogram:\n  main:\n"
      "    - barrier\n    - recv: {elements: 4, src: 1 - rank}\n");
  const std::string interrupt =
      " 2>&1 & lockstep=$!; until test -s " + temporary.path() +
      "/lockstep-*/rank-1.journal; do sleep 0.1; done; sleep 1; kill -INT $lockstep; "
      "wait $lockstep";
  const Ended ended = run_program("exec --hang-after 600 " + file + interrupt, "", "",
                                  "export TMPDIR=" + temporary.path() + "; ");
  INFO(ended.output);
  CHECK(ended.code == 130);
  CHECK(has(ended, "interrupted: all 2 ranks were ended"));
  CHECK(has(ended, "rank 1 "));
  CHECK_FALSE(has(ended, " 0 operations"));
  CHECK(std::system(("pgrep -f 'lockstep-ran[k] " + file + "'").c_str()) != 0);
  const size_t at = ended.output.find("--reports ");
  REQUIRE(at != std::string::npos);
  const std::string reports = ended.output.substr(at + 10, ended.output.find('\n', at) - at - 10);
  CHECK(std::filesystem::file_size(reports + "/rank-0.journal") > 0);
}

TEST_CASE("a rank that a fault takes away dies, and the finding is that of the simulation") {
  const Folder folder;
  const std::string file =
      folder.write("lost.yaml",
                   "version: 1\ncluster: {ranks: 3, network: {bandwidth: 1 GB/s}}\n"
                   "process_group: {backend: gloo}\nfaults: [{lost_rank: {rank: 1, call: 2}}]\n"
                   "program:\n  main:\n    - let: {x: \"full(4, 1.0)\"}\n    - all_reduce: x\n"
                   "    - all_reduce: x\n");
  const Folder temporary;
  const Ended ended = exec_into(temporary, "--hang-after 0.5 " + file);
  INFO(ended.output);
  CHECK(ended.code == 1);
  CHECK(has(ended, "[rank 1] ended by signal 9"));
  CHECK_FALSE(has(ended, "TCPStore"));  // what LibTorch warns of, once a peer is gone
  CHECK(has(ended, "ranks 0, 2 wait forever in all_reduce: rank 1 was lost after its operation 1"));
  CHECK(has(ended, "outcome equal"));
  CHECK(has(ended, "calls equal"));
  CHECK(std::filesystem::is_empty(temporary.path()));
}

TEST_CASE("who hangs after a rank has died has the time to say so") {
  const Folder folder;
  const std::string file =
      folder.write("dead.yaml",
                   "version: 1\ncluster: {ranks: 3, network: {bandwidth: 1 GB/s}}\n"
                   "process_group: {backend: gloo}\nfaults: [{lost_rank: {rank: 1, call: 2}}]\n"
                   "program:\n  main:\n    - barrier\n    - if: rank != 1\n"
                   "      then: [{recv: {elements: 4, src: 2 - rank}}]\n      else: [barrier]\n");
  // Their deadline, and then the end of the dead one, for which they wait as long again.
  const Ended ended = run_program("exec --device cpu --hang-after 9 " + file);
  INFO(ended.output);
  CHECK(ended.code == 1);
  CHECK(has(ended, "LS10"));
  CHECK(has(ended, "outcome equal"));
}

TEST_CASE("compare takes the journal of a rank that left no report") {
  const Folder folder;
  const std::string file =
      folder.write("left.yaml",
                   "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
                   "process_group: {backend: gloo}\nprogram:\n  main:\n    - barrier\n"
                   "    - if: rank == 0\n      then: [{recv: {elements: 4, src: 1}}]\n"
                   "      else: [{recv: {elements: 4, src: 0, tag: 7}}]\n");
  const std::string both =
      two_ranks(file, folder, "--hang-after 4") + "victim=$!; sleep 3; kill -9 $victim; wait; ";
  const Ended ended =
      run_program("compare --reports " + folder.path() + " " + file, "2>&1", "", both);
  INFO(ended.output);
  CHECK(has(ended, "rank 1 was lost after its operation 2, recv"));
}

TEST_CASE("compare reads what ranks left that others started") {
  const Folder folder;
  const std::string training = scenario("accumulation.yaml:accumulated");
  const Ended ended = run_program("compare --reports " + folder.path() + " " + training, "2>&1", "",
                                  two_ranks(training, folder) + "wait; ");
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(has(ended, "calls equal"));
}

TEST_CASE("ranks that never join are named after the deadline") {
  const std::string training = scenario("accumulation.yaml:accumulated");
  const auto start = [&](const std::string& variables) {
    return run_shell("WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000)) " +
                     variables + " " LOCKSTEP_RANK_PROGRAM " --join-timeout 1 " + training);
  };
  const Ended alone = start("RANK=0");
  INFO(alone.output);
  CHECK(alone.code == 6);
  CHECK(has(alone, "error: rank 1 never joined at 127.0.0.1:"));
  CHECK(has(alone, "start it with WORLD_SIZE=2"));
  CHECK(lines_of(alone.output) == 1);
  const Ended without_rank_zero = start("RANK=1");
  INFO(without_rank_zero.output);
  CHECK(without_rank_zero.code == 6);
  CHECK(has(without_rank_zero, "error: nobody answers at 127.0.0.1:"));
  CHECK(lines_of(without_rank_zero.output) == 1);
}

TEST_CASE("a port in use is reported with what to do") {
  // The first rank 0 holds the port while it waits for its peer.
  const std::string rank_zero = "RANK=0 " LOCKSTEP_RANK_PROGRAM " " +
                                scenario("accumulation.yaml:accumulated") + " --join-timeout ";
  const Folder reports;  // two runs cannot share one
  const Ended second =
      run_shell("export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000)); " +
                rank_zero + "6 >/dev/null 2>&1 & sleep 3; " + rank_zero + "1 --report-folder " +
                reports.path());
  INFO(second.output);
  CHECK(second.code == 6);
  CHECK(has(second, "error: rank 0 cannot listen at 127.0.0.1:"));
  CHECK(has(second, "address already in use"));
  CHECK(has(second, "set MASTER_PORT to a free port"));
  CHECK(lines_of(second.output) == 1);
}

TEST_CASE("a missing or damaged report is reported, and is no verdict") {
  const Folder folder;
  const std::string training = scenario("accumulation.yaml:accumulated");
  const Ended missing = run_program("compare --reports " + folder.path() + " " + training);
  CHECK(missing.code == 6);
  CHECK(has(missing, "holds no rank-0.report"));
  folder.write("rank-0.report", "\xa1\x61");
  const Ended damaged = run_program("compare --reports " + folder.path() + " " + training);
  INFO(damaged.output);
  CHECK(damaged.code == 7);
  CHECK(has(damaged, "rank-0.report"));
}

TEST_CASE("a rank that nobody started says how to start it") {
  const Folder folder;
  const std::string training = scenario("accumulation.yaml:accumulated");
  run_program("--version", "2>&1", "",
              "env -u RANK " + std::string(LOCKSTEP_RANK_PROGRAM) + " " + training + " > " +
                  folder.file("said") + " 2>&1; ");
  CHECK(folder.read("said").find("lockstep exec, or with torchrun") != std::string::npos);
}

#else

TEST_CASE("without LibTorch exec says how to get it") {
  const Ended ended = run_program("exec " + scenario("accumulation.yaml:accumulated"));
  CHECK(ended.code == 5);
  CHECK(has(ended, "./dev libtorch"));
}

#endif

}  // namespace exec_test
