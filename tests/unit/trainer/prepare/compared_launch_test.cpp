// What starts the processes of a training that is tried under another strategy.
#include "model/trainer/prepare/compared_launch.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace compared_launch_test {

namespace {

std::string text(const std::string& version, const std::string& trainer,
                 const std::string& launcher) {
  return fmt::format(
      "version: 1\nversions: {{lightning: \"{}\"}}\ncluster: {{preset: dgx-a100, nodes: 2}}\n"
      "model: {{input: [8], layers: [{{Linear: [8, 8]}}], loss: MSELoss}}\n"
      "data: {{train: {{samples: 640, batch_size: 2}}}}\n"
      "trainer: {{accelerator: gpu, {}, max_steps: 2}}\n{}",
      version, trainer, launcher.empty() ? "" : "launcher: " + launcher + "\n");
}

/// "horovodrun: trainer.num_nodes=null ..", of a training of `trainer` that tries `strategy`.
std::string launch(const std::string& version, const std::string& trainer,
                   const std::string& written, const std::string& strategy,
                   const std::string& launcher) {
  const Scenario as_written =
      scenario_of(text(version, trainer + ", strategy: " + written, launcher));
  const Scenario tried = scenario_of(text(version, trainer + ", strategy: " + strategy, launcher));
  const ComparedLaunch found =
      launch_to_compare(tried, prepare(tried, standard_strategies()).placement,
                        prepare(as_written, standard_strategies()).placement);
  return fmt::format("{}: {}", found.by, fmt::join(found.settings, " "));
}

constexpr const char* both_nodes = "devices: 8, num_nodes: 2";
constexpr const char* by_horovodrun = "{horovodrun: {np: 16, hosts: \"host1:8,host2:8\"}}";
constexpr const char* by_baguarun = "{baguarun: {nproc_per_node: 8, host_list: \"host1,host2\"}}";
constexpr const char* to_horovod =
    "horovodrun: trainer.num_nodes=null launcher={horovodrun: {np: 16, hosts: [8, 8]}}";

}  // namespace

TEST_CASE("horovod is compared on several nodes by horovodrun, without num_nodes") {
  CHECK(launch("1.9", both_nodes, "ddp", "horovod", "") == to_horovod);
  CHECK(launch("1.9", both_nodes, "ddp", "{HorovodStrategy: {op: adasum}}", "") == to_horovod);
  CHECK(launch("1.9", both_nodes, "bagua", "horovod", by_baguarun) == to_horovod);
  // On one node nothing else is needed, nor of a launcher that starts it already.
  CHECK(launch("1.9", "devices: 8", "ddp", "horovod", "") == ": ");
  CHECK(launch("1.9", "devices: 1", "horovod", "horovod", by_horovodrun) == ": ");
  CHECK(launch("1.9", "devices: 8", "ddp", "horovod", "{torchrun: {nproc_per_node: 8}}") ==
        "horovodrun: launcher={horovodrun: {np: 8, hosts: [8]}}");
  // Up to 1.5 more GPUs than one are refused (check_horovod).
  CHECK(launch("1.5", "gpus: 8", "ddp", "horovod", "") ==
        "horovodrun: trainer.gpus=1 launcher={horovodrun: {np: 8, hosts: [8]}}");
  // 2.0 has no Horovod, however it is started.
  CHECK(launch("2.0", both_nodes, "ddp", "horovod", "") == ": ");
}

TEST_CASE("what Horovod's launcher counted is devices and num_nodes of other strategies") {
  const std::string to_lightning =
      "Lightning: launcher=lightning trainer.devices=8 trainer.num_nodes=2";
  for (const char* strategy : {"ddp", "bagua", "ddp_spawn", "single_device"}) {
    CHECK(launch("1.9", "devices: 1", "horovod", strategy, by_horovodrun) == to_lightning);
  }
  CHECK(launch("1.9", "devices: 1", "horovod", "ddp",
               "{mpirun: {np: 16, hosts: \"host1:8,host2:8\"}}") == to_lightning);
  CHECK(launch("1.5", "gpus: 1", "horovod", "ddp", "{horovodrun: {np: 8}}") ==
        "Lightning: launcher=lightning trainer.gpus=8");
  // A trainer that counts its own devices keeps them.
  CHECK(launch("1.9", both_nodes, "ddp", "ddp", by_horovodrun) ==
        "Lightning: launcher=lightning trainer.num_nodes=2");
  // Lightning has no nodes of different sizes.
  CHECK(launch("1.9", "devices: 1", "horovod", "ddp",
               "{horovodrun: {np: 6, hosts: \"host1:4,host2:2\"}}") == ": ");
}

TEST_CASE("no launcher starts what has processes of its own") {
  CHECK(launch("1.9", both_nodes, "bagua", "ddp", by_baguarun) == ": ");
  for (const char* strategy : {"ddp_spawn", "single_device"}) {
    CHECK(launch("1.9", both_nodes, "bagua", strategy, by_baguarun) ==
          "Lightning: launcher=lightning trainer.num_nodes=2");
  }
  CHECK(launch("1.9", both_nodes, "ddp", "ddp_spawn", "") == ": ");
}

}  // namespace compared_launch_test
