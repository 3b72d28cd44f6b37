// Ranks that are slow, stopped or doubly started, and what is left of launchers that were killed.
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace slow_rank_test {

#ifdef LOCKSTEP_RANK_PROGRAM

namespace {

bool has(const Ended& ended, const std::string& text) {
  return ended.output.find(text) != std::string::npos;
}

const std::string barrier =
    "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
    "process_group: {backend: gloo}\nprogram:\n  main:\n    - barrier\n";

/// Rank 0 computes alone for some seconds before the step in which rank 1 waits for it.
std::string slow_rank_0() {
  return "version: 1\ncluster: {preset: cpu}\n"
         "trainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 1, "
         "num_sanity_val_steps: 0, limit_val_batches: 0}\n"
         "data: {train: {samples: 128, batch_size: 64}}\n"
         "model: {input: [1024], layers: [{Linear: [1024, 1024]}], loss: MSELoss}\n"
         "verify: {numerics: true}\n"
         "program:\n  training_step:\n"
         "    - if: is_global_zero\n      then:\n"
         "        - repeat: 800\n          do: [{forward: {through: module}}]\n"
         "    - forward\n";
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::string rank_command(int rank, const std::string& scenario, const std::string& folder,
                         const std::string& options = "") {
  return "RANK=" + std::to_string(rank) + " " LOCKSTEP_RANK_PROGRAM " " + scenario + " " + options +
         " --report-folder " + folder;
}

const std::string world_of_two =
    "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 12000)); ";

}  // namespace

TEST_CASE("a rank that computes for longer than the deadline is not lost and nothing hangs") {
  const Folder folder;
  const std::string file = folder.write("slow.yaml", slow_rank_0());
  const auto began = std::chrono::steady_clock::now();
  const Ended ended = run_program("exec --skip-values --hang-after 0.5 " + file);
  INFO(ended.output);
  CHECK(seconds_since(began) > 1.5);  // or the test says nothing: three deadlines
  CHECK_FALSE(has(ended, "LS101"));
  CHECK(has(ended, "outcome equal"));
}

TEST_CASE("ranks that others started wait for one that computes") {
  const Folder folder;
  const std::string file = folder.write("slow.yaml", slow_rank_0());
  const Ended ended =
      run_shell(world_of_two + rank_command(0, file, folder.file("a"), "--hang-after 0.5") + " & " +
                rank_command(1, file, folder.file("a"), "--hang-after 0.5") +
                " & wait; " LOCKSTEP_PROGRAM " compare --skip-values " + file + " --reports " +
                folder.file("a"));
  INFO(ended.output);
  CHECK(has(ended, "outcome equal"));
  CHECK_FALSE(has(ended, "gave up"));
}

TEST_CASE("a second run into a report folder learns who holds it") {
  const Folder folder;
  const std::string file = folder.write("one.yaml", barrier);
  // Rank 0 alone waits for rank 1 in the folder.
  const Ended ended =
      run_shell(world_of_two + rank_command(0, file, folder.file("a"), "--join-timeout 20") +
                " & first=$!; sleep 3; echo first $first; " +
                rank_command(0, file, folder.file("a"), "--join-timeout 1") +
                "; echo second $?; kill -KILL $first; wait $first; " +
                rank_command(0, file, folder.file("a"), "--join-timeout 1") + "; echo third $?");
  INFO(ended.output);
  const size_t at = ended.output.find("first ") + 6;
  const std::string first = ended.output.substr(at, ended.output.find('\n', at) - at);
  CHECK(has(ended, "process " + first + " leaves the report of rank 0 in " + folder.file("a")));
  CHECK(has(ended, "second 6"));
  CHECK(has(ended, "third 6"));  // it got the folder, and nobody else came
  CHECK(has(ended, "rank 1 never joined"));
}

TEST_CASE("a rank stopped before it has joined holds nobody beyond the timeout and is named") {
  const Folder folder;
  const std::string file = folder.write("one.yaml", barrier);
  for (const int stopped : {0, 1}) {
    const int other = 1 - stopped;
    const auto began = std::chrono::steady_clock::now();
    const Ended ended =
        run_shell(world_of_two + rank_command(stopped, file, folder.file("a"), "--join-timeout 3") +
                  " & stopped=$!; kill -STOP $stopped; " +
                  rank_command(other, file, folder.file("a"), "--join-timeout 3") +
                  "; echo ended $?; kill -KILL $stopped");
    INFO(ended.output);
    CHECK(seconds_since(began) < 20);  // 3 s, and time to load LibTorch
    CHECK(has(ended, "ended 6"));
    CHECK(has(ended, "rank " + std::to_string(stopped)));
  }
}

TEST_CASE("what a killed launcher left is removed by the next run") {
  const Folder temporary;
  const Folder folder;
  const std::string file =
      folder.write("long.yaml",
                   "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n"
                   "process_group: {backend: gloo}\nprogram:\n  main:\n"
                   "    - recv: {elements: 4, src: 1 - rank}\n");
  const std::string place = "export TMPDIR=" + temporary.path() + "; ";
  run_shell(place + LOCKSTEP_PROGRAM " exec --hang-after 600 " + file +
            " & sleep 2; kill -KILL $!; sleep 0.5");
  REQUIRE_FALSE(std::filesystem::is_empty(temporary.path()));
  const std::string quick = folder.write("one.yaml", barrier);
  const Ended ended = run_shell(place + LOCKSTEP_PROGRAM " exec " + quick);
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(std::filesystem::is_empty(temporary.path()));
}

#endif

}  // namespace slow_rank_test
