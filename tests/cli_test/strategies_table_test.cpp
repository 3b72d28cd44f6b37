// The table of `run --strategies`.
#include <catch2/catch.hpp>
#include <string>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace strategies_table_test {

// A label may hold a comma, as `fsdp by blocks, offload` does; the optimizer of what offloads is
// DeepSpeed's, whose name the label tells.
TEST_CASE("--strategies takes the labels of its own table") {
  const Folder folder;
  const std::string file = folder.write(
      "a.yaml",
      "version: 1\n"
      "cluster: {preset: dgx-a100, nodes: 1}\n"
      "model: {preset: gpt2}\n"
      "optimizer: {Adam: {lr: 1e-4}}\n"
      "data: {train: {samples: 640, batch_size: 1}}\n"
      "trainer: {accelerator: gpu, devices: 2, max_steps: 2, precision: bf16-mixed}\n");
  const Ended ended = run_program("run " + file +
                                  " --strategies 'fsdp by blocks, offload,ddp,"
                                  "deepspeed_stage_3_offload'");
  INFO(ended.output);
  CHECK(ended.code == 0);
  for (const char* row : {"\n  fsdp by blocks, offload ", "\n  ddp ",
                          "\n  deepspeed_stage_3_offload, DeepSpeedCPUAdam "}) {
    CHECK(ended.output.find(row) != std::string::npos);
  }
  CHECK(ended.output.find("refused") == std::string::npos);
  CHECK(run_program("run " + file + " --strategies 'fsdp by blocks, offloaded'").code == 3);
}

TEST_CASE("--strategies writes a precision as the release of a strategy does, and says so") {
  const Folder folder;
  const auto scenario = [&folder](const std::string& versions) {
    return folder.write(
        "a.yaml",
        "version: 1\n" + versions +
            "cluster: {preset: dgx-a100, nodes: 1}\n"
            "model: {input: [8], layers: [{Linear: [8, 8]}], loss: MSELoss}\n"
            "optimizer: SGD\n"
            "data: {train: {samples: 64, batch_size: 2}}\n"
            "trainer: {accelerator: gpu, devices: 2, max_steps: 2, precision: bf16-mixed}\n");
  };
  const Ended ended = run_program("run " + scenario("") + " --strategies ddp_sharded,ddp");
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(ended.output.find("refused") == std::string::npos);
  CHECK(ended.output.find("ddp_sharded: by Lightning 1.x") != std::string::npos);
  CHECK(ended.output.find("`precision: bf16`") != std::string::npos);
  // Where the scenario names the release, it is wrong itself.
  const Ended older = run_program("run " + scenario("versions: {lightning: \"1.9\"}\n") +
                                  " --strategies ddp_sharded");
  CHECK(older.output.find("came with Lightning 2.0") != std::string::npos);
}

}  // namespace strategies_table_test
