#include "model/trainer/framework/accelerator_choice.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/strategy/registry.hpp"
#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace accelerator_choice_test {

namespace {

struct AcceleratorRow {
  std::string name;
  Version lightning;
  std::string reason;  ///< empty: CUDA
};

// Registered by accelerators/*.py of each release: hpu from 1.6 to 2.0, ipu up to 2.0, mps and cuda
// from 1.7 on, tpu in all.
const std::vector<AcceleratorRow>& rows() {
  static const std::vector<AcceleratorRow> all = {
      {"gpu", {1, 4, 9}, ""},
      {"gpu", {2, 6, 0}, ""},
      {"cuda", {1, 6, 5}, "came with Lightning 1.7"},
      {"cuda", {1, 7, 7}, ""},
      {"tpu", {1, 4, 9}, "TPUs are not available"},
      {"tpu", {1, 9, 5}, "`TPUAccelerator` can not run"},
      {"tpu", {2, 0, 9}, "`TPUAccelerator` can not run"},
      {"tpu", {2, 1, 4}, "`XLAAccelerator` can not run"},
      {"mps", {1, 6, 5}, "came with Lightning 1.7"},
      {"mps", {1, 7, 7}, "`MPSAccelerator` can not run"},
      {"mps", {2, 6, 0}, "`MPSAccelerator` can not run"},
      {"hpu", {1, 5, 10}, "came with Lightning 1.6"},
      {"hpu", {1, 6, 5}, "`HPUAccelerator` can not run"},
      {"hpu", {2, 0, 9}, "`HPUAccelerator` can not run"},
      {"hpu", {2, 1, 4}, "lightning-habana"},
      {"hpu", {2, 6, 0}, "HPU is currently not supported"},
      {"ipu", {1, 4, 9}, "IPUs are not available"},
      {"ipu", {2, 0, 9}, "`IPUAccelerator` can not run"},
      {"ipu", {2, 2, 5}, "lightning-graphcore"},
      {"npu", {2, 6, 0}, "no version of Lightning"}};
  return all;
}

Preparation placed(const std::string& trainer) {
  return prepare(scenario_of("version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
                             "model: {input: [4], layers: [{Linear: [4, 2]}]}\n"
                             "data: {train: {samples: 8, batch_size: 2}}\n" +
                             trainer),
                 standard_strategies());
}

}  // namespace

TEST_CASE("TPUs and Apple's GPU are taken where they are, and nothing else is taken for them") {
  const auto reason = [](const char* asked, Version lightning, DeviceType machine) {
    const auto refusal = refusal_of_accelerator(asked, lightning, machine);
    return refusal ? refusal->message : std::string();
  };
  for (const Version& lightning : {Version{1, 4, 9}, Version{1, 9, 5}, Version{2, 6, 0}}) {
    CHECK(reason("tpu", lightning, DeviceType::tpu).empty());
    CHECK_FALSE(reason("gpu", lightning, DeviceType::tpu).empty());
    CHECK_FALSE(reason("tpu", lightning, DeviceType::mps).empty());
  }
  CHECK(reason("mps", {1, 7, 7}, DeviceType::mps).empty());
  CHECK(reason("gpu", {1, 7, 7}, DeviceType::mps).empty());
  CHECK(reason("gpu", {2, 6, 0}, DeviceType::tpu).starts_with("No supported gpu backend found!"));
  CHECK(reason("gpu", {1, 6, 5}, DeviceType::mps).find("`GPUAccelerator` can not run") !=
        std::string::npos);
  CHECK(reason("cuda", {2, 6, 0}, DeviceType::mps).find("`CUDAAccelerator` can not run") !=
        std::string::npos);
  CHECK(reason("mps", {2, 6, 0}, DeviceType::tpu).find("`MPSAccelerator` can not run") !=
        std::string::npos);
}

// accelerator_connector.py, _choose_auto_accelerator of 1.6 to 2.6; up to 1.5 has_tpu and has_gpu.
TEST_CASE("auto takes what the machine has, as the version knows it") {
  const auto device = [](Version lightning, DeviceType machine, bool gives_devices = false) {
    AcceleratorSituation situation;
    situation.lightning = lightning;
    situation.machine = machine;
    situation.gives_devices = gives_devices;
    return choose_accelerator("auto", situation).device;
  };
  for (const DeviceType machine : {DeviceType::tpu, DeviceType::cuda}) {
    CHECK(device({1, 5, 10}, machine) == DeviceType::cpu);
    CHECK(device({1, 5, 10}, machine, true) == machine);
    CHECK(device({1, 6, 5}, machine) == machine);
    CHECK(device({2, 6, 0}, machine) == machine);
  }
  CHECK(device({1, 6, 5}, DeviceType::mps) == DeviceType::cpu);
  CHECK(device({1, 7, 7}, DeviceType::mps) == DeviceType::mps);
  CHECK(device({2, 6, 0}, DeviceType::mps) == DeviceType::mps);
}

TEST_CASE("1.x trains on TPU cores where tpu_cores names some") {
  AcceleratorSituation situation;
  situation.lightning = {1, 9, 5};
  situation.machine = DeviceType::tpu;
  CHECK(choose_accelerator("", situation).device == DeviceType::cpu);
  situation.gives_tpu_cores = true;
  CHECK(choose_accelerator("", situation).device == DeviceType::tpu);
  situation.machine = DeviceType::cuda;
  CHECK(choose_accelerator("", situation).is_refused_by_cores);
  situation.gives_tpu_cores = false;
  situation.gives_gpus = true;
  situation.machine = DeviceType::tpu;
  CHECK(choose_accelerator("", situation).refusal.has_value());
}

TEST_CASE("an accelerator that is no GPU is refused with the version's reason, and never a GPU") {
  for (const AcceleratorRow& row : rows()) {
    INFO(row.name << " " << row.lightning.major << "." << row.lightning.minor);
    const auto refusal = refusal_of_accelerator(row.name, row.lightning);
    REQUIRE(refusal.has_value() == !row.reason.empty());
    if (refusal) {
      CHECK(refusal->message.find(row.reason) != std::string::npos);
      CHECK_FALSE(refusal->remedy.empty());
      CHECK(refusal->is_name == (row.name != "npu"));
    }
  }
}

TEST_CASE("a Trainer with another accelerator does not start") {
  for (const char* name : {"tpu", "mps", "hpu", "ipu", "npu"}) {
    INFO(name);
    CHECK_FALSE(
        placed(std::string("trainer: {accelerator: ") + name + ", devices: 1, max_epochs: 1}\n")
            .runnable());
  }
}

// accelerator_connector.py of 1.5: has_gpu asks whether `gpus` or `devices` names any.
TEST_CASE("auto takes a GPU that is there, before 1.6 where a number is given") {
  const auto cpu = [](const std::string& version, const std::string& more) {
    return placed("trainer: {accelerator: auto, max_epochs: 1" + more +
                  "}\nversions: {lightning: \"" + version + "\"}\n")
        .placement.cpu;
  };
  CHECK(cpu("1.5.10", ""));
  CHECK_FALSE(cpu("1.5.10", ", devices: 2"));
  CHECK_FALSE(cpu("1.5.10", ", gpus: 2"));
  CHECK_FALSE(cpu("1.6.5", ""));
  CHECK_FALSE(cpu("2.6.0", ""));
}

TEST_CASE("a remedy names what has the accelerator, or says that nothing has") {
  const auto remedy = [](const char* asked, Version lightning, DeviceType machine) {
    return refusal_of_accelerator(asked, lightning, machine).value().remedy;
  };
  CHECK(remedy("tpu", {2, 6, 0}, DeviceType::cuda) ==
        "use accelerator: gpu or cpu, or a cluster that has it, such as tpu-v3-8");
  CHECK(remedy("hpu", {2, 0, 9}, DeviceType::cuda) ==
        "use accelerator: gpu or cpu: no cluster of a scenario can have it");
  CHECK(remedy("mps", {1, 6, 5}, DeviceType::mps) ==
        "set versions.lightning to 1.7 or newer, or use cpu");
}

}  // namespace accelerator_choice_test
