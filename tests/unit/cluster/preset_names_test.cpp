// Names that people give GPUs and machines lead to a preset, or to what is nearest.
#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"

using namespace lockstep;

namespace preset_names_test {

namespace {

using Verdict = PresetAnswer::Verdict;

void leads(const PresetAnswer& answer, Verdict verdict, std::string_view name) {
  INFO(name);
  CHECK(answer.verdict == verdict);
  CHECK(answer.name == name);
}

}  // namespace

TEST_CASE("a GPU is found by its short form and by the name that its driver gives") {
  leads(find_device_name("a100"), Verdict::modelled, "a100-sxm4-80gb");
  leads(find_device_name("A100-80GB"), Verdict::modelled, "a100-sxm4-80gb");
  leads(find_device_name("a100_40gb"), Verdict::modelled, "a100-sxm4-40gb");
  leads(find_device_name("v100"), Verdict::modelled, "v100-sxm2-32gb");
  leads(find_device_name("NVIDIA H100 PCIe"), Verdict::modelled, "h100-pcie-80gb");
  leads(find_device_name("NVIDIA GeForce RTX 3090"), Verdict::modelled, "rtx-3090");
  leads(find_device_name("T4"), Verdict::modelled, "t4");
}

TEST_CASE("a machine is found by its short form and in the spelling of its cloud") {
  leads(find_cluster_name("DGX-1"), Verdict::modelled, "dgx-1v");
  leads(find_device_name("B200"), Verdict::modelled, "b200-sxm-180gb");
  leads(find_device_name("B300"), Verdict::modelled, "b300-sxm-288gb");
  leads(find_cluster_name("p4de"), Verdict::modelled, "p4de.24xlarge");
  leads(find_cluster_name("Standard_ND96asr_v4"), Verdict::modelled, "nd96asr-v4");
  leads(find_cluster_name("a3-highgpu-8g"), Verdict::modelled, "a3-highgpu-8g");
}

TEST_CASE("what exists and is not modelled leads to the nearest that is") {
  leads(find_device_name("GB300"), Verdict::not_modelled, "gb200-186gb");
  leads(find_cluster_name("p3.8xlarge"), Verdict::not_modelled, "p3.16xlarge");
}

TEST_CASE("what is no name of a preset leads nowhere") {
  for (const char* name : {"", "gpu", "a1000", "nvidia", "dgx", "g5"}) {
    leads(find_device_name(name), Verdict::unknown, "");
    leads(find_cluster_name(name), Verdict::unknown, "");
  }
}

TEST_CASE("every alias and every nearest name is a preset") {
  for (const PresetAlias& alias : device_aliases()) {
    INFO(alias.alias);
    CHECK(device_preset(alias.name));
    CHECK(find_device_name(alias.alias).name == alias.name);
  }
  for (const UnmodelledPreset& other : unmodelled_devices()) {
    INFO(other.name);
    CHECK(device_preset(other.nearest));
    CHECK(find_device_name(other.name).verdict == Verdict::not_modelled);
  }
  for (const PresetAlias& alias : cluster_aliases()) {
    INFO(alias.alias);
    CHECK(cluster_preset(alias.name));
    CHECK(find_cluster_name(alias.alias).name == alias.name);
  }
  for (const UnmodelledPreset& other : unmodelled_clusters()) {
    INFO(other.name);
    CHECK(cluster_preset(other.nearest));
    CHECK(find_cluster_name(other.name).verdict == Verdict::not_modelled);
  }
}

TEST_CASE("every GPU has a usual machine that has NVLink only if the GPU may") {
  for (const DeviceModel& device : device_presets()) {
    INFO(device.name);
    CHECK(cluster_preset(usual_cluster_of(device.name)));
  }
  for (const Cluster& cluster : cluster_presets()) {
    INFO(cluster.name);
    CHECK((cluster.node.nvlink > BytesPerSecond(0)) == has_nvlink(cluster.node.device.name));
  }
}

TEST_CASE("names of GPUs that NVML and people write lead to their presets") {
  leads(find_device_name("Tesla P100-SXM2-16GB"), Verdict::modelled, "p100-sxm2-16gb");
  leads(find_device_name("Tesla P40"), Verdict::modelled, "p40");
  leads(find_device_name("NVIDIA RTX A6000"), Verdict::modelled, "a6000");
  leads(find_device_name("NVIDIA RTX 6000 Ada Generation"), Verdict::modelled, "rtx-6000-ada");
  leads(find_device_name("Quadro RTX 8000"), Verdict::modelled, "quadro-rtx-8000");
  leads(find_device_name("NVIDIA TITAN RTX"), Verdict::modelled, "titan-rtx");
  leads(find_device_name("NVIDIA H100 NVL"), Verdict::modelled, "h100-nvl-94gb");
  leads(find_device_name("NVIDIA GeForce RTX 5090"), Verdict::modelled, "rtx-5090");
  leads(find_device_name("mi300x"), Verdict::not_modelled, "h200-sxm-141gb");
}

TEST_CASE("dense peaks are half of what data sheets state with sparsity") {
  const auto half = [](const char* name) {
    return static_cast<double>(device_preset(name)->speed(DType::fp16).peak.count());
  };
  CHECK(half("h100-nvl-94gb") == Approx(1671e12 / 2));
  CHECK(half("a6000") == Approx(309.7e12 / 2).epsilon(0.001));
  CHECK(half("a40") == Approx(299.4e12 / 2));
  CHECK(half("l40") == Approx(362.1e12 / 2));
  CHECK(half("b300-sxm-288gb") == Approx(36e15 / 2 / 8));             // of eight GPUs
  CHECK(half("rtx-6000-ada") == Approx(1457e12 / 4).epsilon(0.001));  // in FP8
  CHECK(half("p40") < 0.02 * 12e12);
  CHECK_FALSE(device_preset("p100-pcie-16gb")->supports(DType::bf16));
}

}  // namespace preset_names_test
