// A limit ends a command in time, wherever it is; what is known by then is shown as partial.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace limits_test {

namespace {

std::string bare(int ranks, const std::string& statements) {
  return "version: 1\ncluster: {ranks: " + std::to_string(ranks) +
         ", network: {bandwidth: 1 GB/s}}\nprogram:\n  main:\n" + statements;
}

// Far more than any machine of ours does in the time that a test waits.
std::string one_long_statement() {
  std::string nested = "arange(60000000)";
  for (int depth = 0; depth < 60; ++depth) {
    nested = "sqrt(exp(" + nested + "))";
  }
  return bare(1, "    - let: {x: 1}\n    - let: {y: sum(" + nested + ")}\n");
}

// Every step is simulated, so that there is time to stop it.
std::string long_training() {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
         "data: {train: {samples: 40_000_000, batch_size: 4}}\n"
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_steps: 5_000_000}\n"
         "verify: {all_steps: true, numerics: false}\n";
}

// Seconds that `command` took.
double timed(const std::string& command, Ended& ended) {
  const auto begin = std::chrono::steady_clock::now();
  ended = run_shell(command);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("values beyond their memory end a run at the statement that asks for them") {
  const Folder folder;
  const std::string file =
      folder.write("doubled.yaml", bare(2,
                                        "    - let: {x: 'full(1024, 1.0)'}\n"
                                        "    - repeat: 40\n"
                                        "      do:\n"
                                        "        - let: {x: 'concat([x, x])'}\n"
                                        "        - all_reduce: {tensor: x, as: x}\n"));
  for (const char* command : {"run", "verify", "test"}) {
    const Ended ended = run_program(std::string(command) + " " + file + " --value-memory 64MiB");
    INFO(ended.output);
    CHECK(ended.code == 4);
    CHECK(ended.output.find("take more than 64") != std::string::npos);
    const bool at_let = ended.output.find("doubled.yaml:8:11") != std::string::npos;
    const bool at_all_reduce = ended.output.find("doubled.yaml:9:11") != std::string::npos;
    CHECK((at_let || at_all_reduce));
    CHECK(ended.output.find("--value-memory SIZE") != std::string::npos);
  }
}

TEST_CASE("values of 64 ranks count together") {
  const Folder folder;
  const std::string file = folder.write(
      "wide.yaml", bare(64, "    - let: {x: 'full(1000000, rank + 1.0)'}\n    - barrier\n"));
  CHECK(run_program("verify " + file + " --value-memory 100MB").code == 4);
  CHECK(run_program("verify " + file + " --value-memory 1GB").code == 0);
  CHECK(run_program("verify " + file + " --value-memory none").code == 2);
}

TEST_CASE("the time limit holds within one statement, and names it") {
  const Folder folder;
  const std::string file = folder.write("long.yaml", one_long_statement());
  Ended ended;
  const double seconds = timed(LOCKSTEP_PROGRAM " verify " + file + " --time-limit 1", ended);
  INFO(ended.output);
  CHECK(ended.code == 4);
  CHECK(ended.output.find("the time limit was reached at " + file + ":6:7") != std::string::npos);
  CHECK(seconds < 10);  // without the limit it takes minutes
}

TEST_CASE("cases that have ended keep their results when another runs out of time") {
  const Folder folder;
  folder.write("a.yaml", bare(2, "    - barrier\n"));
  folder.write("b.yaml", one_long_statement());
  const Ended ended = run_program("test " + folder.path() + " --time-limit 2 --jobs 1");
  INFO(ended.output);
  CHECK(ended.code == 4);
  CHECK(ended.output.find("2 cases, 1 ok, 0 failed, 1 undecided") != std::string::npos);
}

TEST_CASE("an interruption shows what is known and exits 130") {
  const Folder folder;
  folder.write("a.yaml", bare(2, "    - barrier\n"));
  folder.write("b.yaml", one_long_statement());
  for (const char* signal : {"INT", "TERM"}) {
    // A job of a shell that is not interactive ignores SIGINT, so the shell becomes the program.
    Ended ended;
    const double seconds = timed("timeout --preserve-status -s " + std::string(signal) + " 3 " +
                                     LOCKSTEP_PROGRAM " test " + folder.path() + " --jobs 1",
                                 ended);
    INFO(ended.output);
    CHECK(ended.code == 130);
    CHECK(ended.output.find("interrupted: the result is partial") != std::string::npos);
    CHECK(ended.output.find("1 ok") != std::string::npos);
    CHECK(seconds < 15);
  }
}

TEST_CASE("a training that is stopped reports its first steps, as partial") {
  const Folder folder;
  const std::string file = folder.write("long.yaml", long_training());
  const std::string run = std::string(LOCKSTEP_PROGRAM) + " run " + file;
  Ended limited;
  timed(run + " --time-limit 2", limited);
  INFO(limited.output);
  CHECK(limited.code == 4);
  CHECK(limited.output.find(" of 5000000 steps, ") != std::string::npos);
  CHECK(limited.output.find("undecided: the time limit was reached") != std::string::npos);
  CHECK(limited.output.find("samples/s") == std::string::npos);
  CHECK(limited.output.find("hangs") == std::string::npos);  // it was stopped
  Ended interrupted;
  timed("timeout --preserve-status -s INT 2 " + run + " --format json", interrupted);
  INFO(interrupted.output);
  CHECK(interrupted.code == 130);
  CHECK(interrupted.output.find("\"planned_steps\": 5000000") != std::string::npos);
  CHECK(interrupted.output.find("the command was interrupted") != std::string::npos);
  // Time enough, also where others use the machine, for a line that comes after a second.
  const Ended shown = run_program("run " + file + " --time-limit 5 --progress", "2>&1 >/dev/null");
  INFO(shown.output);
  CHECK(shown.output.find(" of 5000000") != std::string::npos);
  const Ended reported =
      run_program("run " + file + " --time-limit 2 --report " + folder.file("page.html"));
  CHECK(reported.code == 4);
  const std::string written = folder.read("page.html");
  CHECK(written.find("this run was stopped: the time limit was reached") != std::string::npos);
  CHECK(written.find("this run hangs") == std::string::npos);
}

TEST_CASE("what a run of many ranks that differ will take is said before it begins") {
  const Folder folder;
  std::string text =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 64}\n"
      "model: {layers: [{Linear: [8, 8]}], input: [8], loss: MSELoss}\n"
      "trainer: {accelerator: gpu, devices: 8, num_nodes: 64, strategy: ddp, max_steps: 2}\n"
      "data: {train: {samples: 100_000, batch_size: 4}}\nverify: {numerics: false}\nfaults:\n";
  for (int rank = 0; rank < 512; ++rank) {
    text += fmt::format("  - {{straggler: {{slowdown: 1.{:03}, rank: {}}}}}\n", rank + 1, rank);
  }
  const std::string run = "run " + folder.write("paces.yaml", text) + " --time-limit 10";
  const Ended shown = run_program(run + " --progress", "2>&1 >/dev/null");
  CHECK(shown.output.starts_with("\r512 ranks differ, so each is simulated: about "));
  CHECK(run_program(run, "2>&1 >/dev/null").output.empty());
}

TEST_CASE("more settings than anyone writes by hand are refused at once") {
  const Folder folder;
  const std::string file = folder.write("a.yaml", bare(2, "    - barrier\n"));
  std::string settings;
  for (int number = 0; number <= 1000; ++number) {
    settings += " --set env.X" + std::to_string(number) + "=a";
  }
  const Ended ended = run_program("run " + file + settings);
  CHECK(ended.code == 2);
  CHECK(ended.output.find("at most 1000 --set") != std::string::npos);
}

}  // namespace limits_test
