// What the program prints of TPUs and of Apple's GPU: nothing of it may speak of CUDA or NCCL.
#include <catch2/catch.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace tpu_test {

namespace {

const std::string training =
    "version: 1\n"
    "model: {input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}\n"
    "data: {train: {samples: 80, batch_size: 4}}\n";

Ended told(const std::string& command, const std::string& cluster, const std::string& trainer) {
  const Folder folder;
  const std::string file = folder.write(
      "scenario.yaml", training + "cluster: {preset: " + cluster + "}\ntrainer: {" + trainer +
                           ", max_epochs: 1, num_sanity_val_steps: 0, limit_val_batches: 0}\n");
  return run_program(command + " " + file);
}

bool has(const Ended& ended, const std::string& text) {
  return ended.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a run on TPUs names XLA, what it compiles, and nothing of CUDA") {
  for (const char* command : {"run -v", "verify"}) {
    const Ended ended = told(command, "tpu-v3-8", "accelerator: tpu, devices: 8");
    INFO(ended.output);
    CHECK(ended.code == 0);
    CHECK(has(ended, "compiled 2 graphs per process by XLA"));
    CHECK(has(ended, "warning[LS404]: XLA compiles 1 more graph for batches of 2"));
    for (const char* foreign : {"CUDA", "NCCL", "nccl", "nvidia", "GPU", "NVLink"}) {
      CHECK_FALSE(has(ended, foreign));
    }
  }
  const Ended run = told("run -v", "tpu-v3-8", "accelerator: tpu, devices: 8");
  CHECK(has(run, "8 x tpu-v3-core on 1 node · fp32 · xla"));
  CHECK(has(run, "UNCALIBRATED"));
}

TEST_CASE("a run on MPS names neither CUDA nor NCCL") {
  const Ended ended = told("run -v", "apple-m2-ultra", "accelerator: mps, devices: 1");
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(has(ended, "single_device · 1 x m2-ultra on 1 node · fp32 · mps"));
  for (const char* foreign : {"CUDA", "NCCL", "nccl", "nvidia", "NVLink"}) {
    CHECK_FALSE(has(ended, foreign));
  }
}

TEST_CASE("a hang on TPUs has no watchdog") {
  const Ended ended = run_program("verify " + std::string(LOCKSTEP_SOURCE_DIR) +
                                  "/scenarios/tpu/rank-zero-barrier.yaml:bug");
  INFO(ended.output);
  CHECK(has(ended, "XLA waits without limit"));
  CHECK_FALSE(has(ended, "watchdog"));
}

TEST_CASE("TPUs are not executed, and said to be so") {
  const Ended ended = told("exec", "tpu-v3-8", "accelerator: tpu, devices: 8");
  INFO(ended.output);
  CHECK(ended.code == 5);
  CHECK(has(ended, "torch_xla"));
}

TEST_CASE("near names of TPUs lead to their presets") {
  for (const char* name : {"v3-8", "TPU-v3-8", "tpu_v3_8"}) {
    INFO(name);
    CHECK(told("run", name, "accelerator: tpu, devices: 8").code == 0);
  }
  const Ended newer = told("run", "tpu-v7-8", "accelerator: tpu, devices: auto");
  CHECK(newer.code == 5);
  CHECK(has(newer, "tpu-v5p-8"));
}

TEST_CASE("NCCL and Gloo carry nothing between TPUs") {
  const Folder folder;
  const std::string file =
      folder.write("scenario.yaml", training +
                                        "cluster: {preset: tpu-v3-8, collectives: nccl}\n"
                                        "process_group: {backend: gloo}\n"
                                        "trainer: {accelerator: tpu, devices: 8, max_epochs: 1}\n");
  const Ended ended = run_program("run " + file);
  INFO(ended.output);
  CHECK(ended.code == 3);
  CHECK(has(ended, "XLAStrategy makes no process group of torch"));
}

}  // namespace tpu_test
