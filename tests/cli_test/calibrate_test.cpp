// Measuring this machine, and predictions based on it.
#include <catch2/catch.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace calibrate_test {

namespace {

bool has(const Ended& ended, const std::string& text) {
  return ended.output.find(text) != std::string::npos;
}

std::string training(const std::string& cluster) {
  return "version: 1\ncluster: " + cluster +
         "\ntrainer: {accelerator: cpu, devices: 2, strategy: ddp, max_steps: 6, "
         "limit_val_batches: 0, num_sanity_val_steps: 0}\n"
         "data: {train: {samples: 96, batch_size: 8}}\noptimizer: {SGD: {lr: 0.001}}\n"
         "model: {input: [48], layers: [{Linear: [48, 96]}, ReLU, {Linear: [96, 24]}]}\n";
}

}  // namespace

TEST_CASE("a calibration on GPUs that are not there says how to get them") {
  // No NVML is found below this folder, whatever this machine has.
  const Folder folder;
  folder.write("libnvidia-ml.so.1", "");
  const Ended ended = run_program("calibrate --device cuda -o " + folder.file("machine.json"),
                                  "2>&1", "", "export LD_LIBRARY_PATH=" + folder.path() + "; ");
  INFO(ended.output);
  CHECK(ended.code == 5);
  CHECK(has(ended, "   = "));
  CHECK_FALSE(std::filesystem::exists(folder.file("machine.json")));
}

TEST_CASE("a file that is no calibration is bad input, with its place") {
  const Folder folder;
  folder.write("machine.json", "{\"format\": \"lockstep-calibration\", \"version\": 7}");
  const std::string file = folder.write("a.yaml", training("{preset: cpu}"));
  const Ended ended = run_program("run a.yaml --calibration machine.json", "2>&1", folder.path());
  INFO(ended.output);
  CHECK(ended.code == 3);
  CHECK(has(ended, "machine.json"));
  CHECK(has(ended, "/version: is not 1"));
  CHECK(has(ended, "--> --calibration:1:21"));
  CHECK(has(ended, "lockstep calibrate"));
  CHECK(run_program("run --calibration nowhere.json " + file).code == 3);
  CHECK(run_program("calibrate --ranks 0").code == 2);
  CHECK(run_program("calibrate -o /nowhere/machine.json").code == 74);
}

#ifdef LOCKSTEP_RANK_PROGRAM

TEST_CASE("a machine that was measured predicts with a range, and exec holds the two together") {
  const Folder folder;
  const Ended measured =
      run_program("calibrate --quick --ranks 2 -o machine.json", "2>&1", folder.path());
  INFO(measured.output);
  REQUIRE(measured.code == 0);
  CHECK(has(measured, "2 ranks, load "));
  const std::string text = folder.read("machine.json");
  CHECK(text.find("\"command\": \"lockstep calibrate --quick --ranks 2") != std::string::npos);
  CHECK(text.find("\"causal_self_attention\"") != std::string::npos);
  CHECK(text.find("\"all_gather\"") != std::string::npos);

  folder.write("a.yaml", training("{preset: cpu}"));
  const Ended plain = run_program("run a.yaml", "2>&1", folder.path());
  CHECK(has(plain, "not calibrated"));
  const Ended run = run_program("run a.yaml --calibration machine.json", "2>&1", folder.path());
  INFO(run.output);
  CHECK(run.code == 0);
  CHECK(has(run, "basis: calibrated on "));
  CHECK(has(run, "2 ranks, "));
  CHECK(has(run, "quick (machine.json)"));
  CHECK_FALSE(has(run, "not calibrated"));

  // The key is relative to the scenario, wherever the program is started.
  const std::string file = folder.write(
      "b.yaml", training("{preset: cpu, calibration: machine.json}") +
                    "expect: [step_time.low <= step_time, step_time <= step_time.high]\n");
  const Ended judged = run_program("test " + file, "2>&1", "/");
  INFO(judged.output);
  CHECK(judged.code == 0);
  const Ended real = run_program("exec " + file);
  INFO(real.output);
  CHECK(has(real, "calls equal"));
  CHECK(has(real, " with machine.json, ratio "));
}

TEST_CASE("a calibration that reaches its time limit is undecided and leaves nothing") {
  const Folder folder;
  const Folder temporary;
  const Ended ended = run_program("calibrate --time-limit 0.05 -o " + folder.file("machine.json"),
                                  "2>&1", "", "export TMPDIR=" + temporary.path() + "; ");
  INFO(ended.output);
  CHECK(ended.code == 4);
  CHECK_FALSE(std::filesystem::exists(folder.file("machine.json")));
  CHECK(std::filesystem::is_empty(temporary.path()));
}

#else

TEST_CASE("without a rank program a calibration says how to get it") {
  const Ended ended = run_program("calibrate --quick");
  CHECK(ended.code == 5);
  CHECK(has(ended, "./dev libtorch"));
}

#endif

}  // namespace calibrate_test
