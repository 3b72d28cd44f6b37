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
  CHECK(ended.output.ends_with("\nnext: lockstep verify " + file +
                               " --strategies 'fsdp by blocks, offload,ddp,"
                               "deepspeed_stage_3_offload'\n"));
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

// Steps of 4 x 2 samples under each, on the same 4 GPUs of 2 nodes.
TEST_CASE("--strategies starts the same processes as each strategy needs it") {
  const Folder folder;
  const auto scenario = [&folder](const std::string& launcher, const std::string& trainer) {
    return folder.write("a.yaml",
                        "version: 1\nversions: {lightning: \"1.9\"}\n"
                        "cluster: {preset: dgx-a100, nodes: 2}\n" +
                            launcher +
                            "model: {input: [8], layers: [{Linear: [8, 8]}], loss: MSELoss}\n"
                            "optimizer: SGD\n"
                            "data: {train: {samples: 640, batch_size: 2}}\n"
                            "trainer: {accelerator: gpu, max_steps: 4, " +
                            trainer + "}\n");
  };
  const auto shows = [](const Ended& ended, const std::string& words) {
    return ended.output.find(words) != std::string::npos;
  };
  const std::string two_nodes =
      scenario("", "devices: 2, num_nodes: 2, strategy: ddp") + " --strategies ";
  const Ended by_name = run_program("run " + two_nodes + "'ddp,horovod,bagua'");
  INFO(by_name.output);
  CHECK(by_name.code == 0);
  CHECK(shows(by_name, "\n  horovod by horovodrun        8  "));
  CHECK(
      shows(by_name,
            "\n  by horovodrun: --set trainer.num_nodes=null --set 'launcher={horovodrun: {np: "));
  CHECK(!shows(by_name, "refused"));
  const Ended adasum = run_program("run " + two_nodes + "'horovod by horovodrun, Adasum'");
  CHECK(shows(adasum, "\n  horovod by horovodrun, Adasum        8  "));
  const std::string horovod =
      scenario("launcher: {horovodrun: {np: 4, hosts: \"host1:2,host2:2\"}}\n",
               "devices: 1, strategy: horovod");
  const Ended others = run_program("run " + horovod + " --strategies 'horovod,ddp,ddp_spawn'");
  INFO(others.output);
  CHECK(shows(others, "\n  horovod                       8  "));
  CHECK(shows(others, "\n  ddp by Lightning              8  "));
  CHECK(shows(others, "\n  ddp_spawn by Lightning        8  "));
  // What the line says gives the figures of the row.
  CHECK(shows(others, "\n  by Lightning: --set launcher=lightning --set trainer.devices=2 --set "));
  const Ended again = run_program("run " + horovod +
                                  " --set launcher=lightning --set trainer.devices=2 --set "
                                  "trainer.num_nodes=2 --set trainer.strategy=ddp");
  CHECK(shows(again, "8 samples per step (2 per device x 4 devices)"));
}

}  // namespace strategies_table_test
