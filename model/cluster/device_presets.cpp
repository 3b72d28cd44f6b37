// Figures of GPUs: from the maker's data sheets, dense (no sparsity). Data sheets that state
// tensor-core rates with sparsity are halved. "As others quote it": the sheet itself was not at
// hand when the figures were entered.
#include <algorithm>
#include <iterator>

#include "model/cluster/preset_parts.hpp"

namespace lockstep {

namespace {

constexpr FlopsPerSecond gigaflops_per_second(int64_t count) {
  return FlopsPerSecond(1'000'000'000) * count;
}

constexpr const char* efficiency_assumption =
    "efficiency curves, memory efficiency and launch overhead are assumed, not measured";

// Assumed: large matrix products reach 75 % of a tensor-core peak and 90 % of a vector peak, and
// half of that at the size which the peak computes in 20 us (tensor) or 5 us (vector).
ComputeSpeed tensor_cores(int64_t gigaflops) {
  return {gigaflops_per_second(gigaflops), {0.75, Flops(gigaflops * 20'000)}};
}
ComputeSpeed vector_units(int64_t gigaflops) {
  return {gigaflops_per_second(gigaflops), {0.90, Flops(gigaflops * 5'000)}};
}

void set_speed(DeviceModel& device, DType dtype, const ComputeSpeed& speed) {
  device.speeds[static_cast<size_t>(dtype)] = speed;
}

DeviceModel gpu(const char* name, int compute_capability, Bytes memory, BytesPerSecond bandwidth,
                const char* source) {
  return {.name = name,
          .type = DeviceType::cuda,
          .compute_capability = compute_capability,
          .memory = memory,
          .memory_bandwidth = bandwidth,
          .memory_efficiency = 0.85,
          .launch_overhead = 5_us,
          .source = source,
          .assumption = efficiency_assumption};
}

/// Rates of a GPU in GFLOP/s. 0: the data sheet has no such rate.
struct Peaks {
  int64_t fp64 = 0;
  int64_t fp32 = 0;
  int64_t tf32 = 0;
  int64_t half = 0;  ///< fp16 and bf16 on tensor cores, sums in fp32
  bool has_bf16 = true;
  bool has_fp64_tensor_cores = false;
  bool has_tensor_cores = true;  ///< else half precision is of vector units
};

DeviceModel with_peaks(DeviceModel device, const Peaks& peaks) {
  set_speed(device, DType::fp64,
            peaks.has_fp64_tensor_cores ? tensor_cores(peaks.fp64) : vector_units(peaks.fp64));
  set_speed(device, DType::fp32, vector_units(peaks.fp32));
  set_speed(device, DType::fp16,
            peaks.has_tensor_cores ? tensor_cores(peaks.half) : vector_units(peaks.half));
  if (peaks.has_bf16) {
    set_speed(device, DType::bf16, tensor_cores(peaks.half));
  }
  if (peaks.tf32 > 0) {
    device.tf32 = tensor_cores(peaks.tf32);
  }
  return device;
}

/// Pascal, without tensor cores.
DeviceModel pascal(const char* name, int compute_capability, Bytes memory, int64_t gigabytes,
                   Peaks peaks, const char* source) {
  peaks.has_bf16 = false;
  peaks.has_tensor_cores = false;
  return with_peaks(gpu(name, compute_capability, memory, gigabytes_per_second(gigabytes), source),
                    peaks);
}

/// No bf16 and no TF32: they came with Ampere.
DeviceModel v100(const char* name, Bytes memory) {
  return with_peaks(gpu(name, 70, memory, gigabytes_per_second(900),
                        "NVIDIA V100 Tensor Core GPU data sheet, 2020 (SXM2)"),
                    {.fp64 = 7'800, .fp32 = 15'700, .half = 125'000, .has_bf16 = false});
}

DeviceModel v100_pcie(const char* name, Bytes memory) {
  return with_peaks(gpu(name, 70, memory, gigabytes_per_second(900),
                        "NVIDIA V100 Tensor Core GPU data sheet, 2020 (PCIe)"),
                    {.fp64 = 7'000, .fp32 = 14'000, .half = 112'000, .has_bf16 = false});
}

/// Turing: fp64 at 1/32 of fp32. The memory clock gives 320 GB/s.
DeviceModel t4() {
  return with_peaks(gpu("t4", 75, 16_GiB, gigabytes_per_second(320),
                        "NVIDIA T4 Tensor Core GPU product brief, 2019"),
                    {.fp64 = 253, .fp32 = 8'100, .half = 65'000, .has_bf16 = false});
}

DeviceModel a100(const char* name, Bytes memory, BytesPerSecond bandwidth, const char* source) {
  return with_peaks(gpu(name, 80, memory, bandwidth, source), {.fp64 = 19'500,
                                                               .fp32 = 19'500,
                                                               .tf32 = 156'000,
                                                               .half = 312'000,
                                                               .has_fp64_tensor_cores = true});
}

/// GA102 and AD10x: fp64 at 1/64 of fp32.
DeviceModel card(const char* name, int compute_capability, Bytes memory, int64_t gigabytes,
                 Peaks peaks, const char* source) {
  peaks.fp64 = peaks.fp32 / 64;
  DeviceModel device = with_peaks(
      gpu(name, compute_capability, memory, gigabytes_per_second(gigabytes), source), peaks);
  device.has_peer_to_peer = !device.name.starts_with("rtx-") || device.name.ends_with("-ada");
  return device;
}

/// TU102 with all of its tensor cores' rate: fp64 at 1/32 of fp32.
DeviceModel turing(const char* name, Bytes memory, const char* source) {
  return with_peaks(gpu(name, 75, memory, gigabytes_per_second(672), source),
                    {.fp64 = 510, .fp32 = 16'300, .half = 130'500, .has_bf16 = false});
}

/// Its cards reach each other over a bridge alone.
DeviceModel titan_rtx() {
  DeviceModel device = turing("titan-rtx", 24_GiB, "NVIDIA TITAN RTX data sheet, 2018");
  device.has_peer_to_peer = false;
  return device;
}

DeviceModel a30() {
  return with_peaks(gpu("a30", 80, 24_GiB, gigabytes_per_second(933),
                        "NVIDIA A30 Tensor Core GPU data sheet, 2021, as others quote it"),
                    {.fp64 = 10'300,
                     .fp32 = 10'300,
                     .tf32 = 82'000,
                     .half = 165'000,
                     .has_fp64_tensor_cores = true});
}

/// SXM5, of H100 and H200.
DeviceModel hopper(const char* name, Bytes memory, int64_t gigabytes, const char* source) {
  return with_peaks(gpu(name, 90, memory, gigabytes_per_second(gigabytes), source),
                    {.fp64 = 67'000,
                     .fp32 = 67'000,
                     .tf32 = 494'500,
                     .half = 989'500,
                     .has_fp64_tensor_cores = true});
}

DeviceModel h100_nvl() {
  return with_peaks(gpu("h100-nvl-94gb", 90, 94_GiB, gigabytes_per_second(3'900),
                        "NVIDIA H100 Tensor Core GPU data sheet, 2024 (NVL), as others quote it"),
                    {.fp64 = 60'000,
                     .fp32 = 60'000,
                     .tf32 = 417'500,
                     .half = 835'500,
                     .has_fp64_tensor_cores = true});
}

/// Per GPU of HGX B200, of HGX B300 and of GB200 NVL72: the rates of the whole system divided by
/// its GPUs.
DeviceModel blackwell(const char* name, int compute_capability, Bytes memory, const Peaks& peaks,
                      const char* source) {
  return with_peaks(gpu(name, compute_capability, memory, gigabytes_per_second(8'000), source),
                    peaks);
}

/// Turing, without bf16 and TF32: fp64 at 1/32 of fp32.
DeviceModel rtx_2080_ti() {
  DeviceModel device =
      with_peaks(gpu("rtx-2080-ti", 75, 11_GiB, gigabytes_per_second(616),
                     "NVIDIA Turing GPU Architecture white paper, 2018 (reference clocks)"),
                 {.fp64 = 420, .fp32 = 13'400, .half = 53'800, .has_bf16 = false});
  device.has_peer_to_peer = false;
  return device;
}

DeviceModel h100_pcie() {
  return with_peaks(gpu("h100-pcie-80gb", 90, 80_GiB, gigabytes_per_second(2'000),
                        "NVIDIA H100 Tensor Core GPU data sheet, 2022 (PCIe)"),
                    {.fp64 = 51'000,
                     .fp32 = 51'000,
                     .tf32 = 378'000,
                     .half = 756'500,
                     .has_fp64_tensor_cores = true});
}

/// A placeholder for one rank on a host without GPU; a calibration replaces it.
DeviceModel cpu() {
  DeviceModel device{.name = "cpu",
                     .memory = 16_GiB,
                     .memory_bandwidth = gigabytes_per_second(20),
                     .memory_efficiency = 0.8,
                     .launch_overhead = 1_us,
                     .source = "none",
                     .assumption =
                         "one core of 2.5 GHz with two 256-bit multiply-add units and its "
                         "share of memory bandwidth; calibrate for this machine"};
  const auto speed = [](int64_t gigaflops) {
    return ComputeSpeed{gigaflops_per_second(gigaflops), {0.6, Flops(gigaflops * 1'000)}};
  };
  set_speed(device, DType::fp32, speed(80));
  set_speed(device, DType::fp64, speed(40));
  return device;
}

}  // namespace

namespace {

/// Of generations before Ampere.
std::vector<DeviceModel> older_devices() {
  return {pascal("p100-sxm2-16gb", 60, 16_GiB, 732, {.fp64 = 5'300, .fp32 = 10'600, .half = 21'200},
                 "NVIDIA Tesla P100 data sheet, 2016 (NVLink), as others quote it"),
          pascal("p100-pcie-16gb", 60, 16_GiB, 732, {.fp64 = 4'700, .fp32 = 9'300, .half = 18'700},
                 "NVIDIA Tesla P100 data sheet, 2016 (PCIe), as others quote it"),
          // fp64 at 1/32 and fp16 at 1/64 of fp32: CUDA C++ Programming Guide, throughput of 6.1.
          pascal("p40", 61, 24_GiB, 346, {.fp64 = 375, .fp32 = 12'000, .half = 187},
                 "NVIDIA Tesla P40 data sheet, 2016, as others quote it"),
          v100("v100-sxm2-16gb", 16_GiB), v100("v100-sxm2-32gb", 32_GiB),
          v100_pcie("v100-pcie-16gb", 16_GiB), v100_pcie("v100-pcie-32gb", 32_GiB), t4(),
          rtx_2080_ti(), titan_rtx(),
          turing("quadro-rtx-8000", 48_GiB, "NVIDIA Quadro RTX 8000 data sheet, 2019")};
}

/// Ampere and Ada.
std::vector<DeviceModel> middle_devices() {
  constexpr const char* a100_sxm = "NVIDIA A100 Tensor Core GPU data sheet, 2021 (SXM4)";
  constexpr const char* a100_pcie = "NVIDIA A100 Tensor Core GPU data sheet, 2021 (PCIe)";
  return {a100("a100-sxm4-40gb", 40_GiB, gigabytes_per_second(1'555), a100_sxm),
          a100("a100-sxm4-80gb", 80_GiB, gigabytes_per_second(2'039), a100_sxm),
          a100("a100-pcie-40gb", 40_GiB, gigabytes_per_second(1'555), a100_pcie),
          a100("a100-pcie-80gb", 80_GiB, gigabytes_per_second(1'935), a100_pcie),
          a30(),
          card("a10", 86, 24_GiB, 600, {.fp32 = 31'200, .tf32 = 62'500, .half = 125'000},
               "NVIDIA A10 Tensor Core GPU data sheet, 2021"),
          card("a10g", 86, 24_GiB, 600, {.fp32 = 35'000, .tf32 = 35'000, .half = 70'000},
               "NVIDIA A10G Tensor Core GPU data sheet for Amazon EC2 G5, 2022"),
          card("a40", 86, 48_GiB, 696, {.fp32 = 37'400, .tf32 = 74'800, .half = 149'700},
               "NVIDIA A40 data sheet, 2021"),
          card("a6000", 86, 48_GiB, 768, {.fp32 = 38'700, .tf32 = 77'400, .half = 154'800},
               "NVIDIA RTX A6000 data sheet, 2021 (tensor cores: with sparsity, halved), as others "
               "quote it"),
          card("rtx-3090", 86, 24_GiB, 936, {.fp32 = 35'600, .tf32 = 35'600, .half = 71'000},
               "NVIDIA Ampere GA102 GPU Architecture white paper, 2021"),
          card("l4", 89, 24_GiB, 300, {.fp32 = 30'300, .tf32 = 60'000, .half = 121'000},
               "NVIDIA L4 Tensor Core GPU data sheet, 2023"),
          card("l40", 89, 48_GiB, 864, {.fp32 = 90'500, .tf32 = 90'500, .half = 181'050},
               "NVIDIA L40 GPU data sheet, 2022"),
          card("l40s", 89, 48_GiB, 864, {.fp32 = 91'600, .tf32 = 183'000, .half = 362'050},
               "NVIDIA L40S GPU data sheet, 2023"),
          card("rtx-4090", 89, 24_GiB, 1'008, {.fp32 = 82'600, .tf32 = 82'600, .half = 165'200},
               "NVIDIA Ada GPU Architecture white paper, 2023"),
          card("rtx-6000-ada", 89, 48_GiB, 960, {.fp32 = 91'100, .tf32 = 182'100, .half = 364'200},
               "NVIDIA RTX 6000 Ada Generation data sheet, 2023 (tensor cores: a quarter and an "
               "eighth of 1457 TFLOP/s in FP8 with sparsity), as others quote it")};
}

/// Hopper and Blackwell.
std::vector<DeviceModel> newest_devices() {
  return {hopper("h100-sxm5-80gb", 80_GiB, 3'350,
                 "NVIDIA H100 Tensor Core GPU data sheet, 2023 (SXM5)"),
          h100_pcie(),
          h100_nvl(),
          hopper("h200-sxm-141gb", 141_GiB, 4'800,
                 "NVIDIA H200 Tensor Core GPU data sheet, 2024 (SXM)"),
          blackwell("b200-sxm-180gb", 100, 180_GiB,
                    {.fp64 = 37'000,
                     .fp32 = 75'000,
                     .tf32 = 1'100'000,
                     .half = 2'250'000,
                     .has_fp64_tensor_cores = true},
                    "NVIDIA DGX B200 and HGX B200 data sheets, 2024"),
          blackwell("b300-sxm-288gb", 103, 288_GiB,
                    {.fp64 = 1'250,
                     .fp32 = 75'000,
                     .tf32 = 1'125'000,
                     .half = 2'250'000,
                     .has_fp64_tensor_cores = true},
                    "NVIDIA DGX B300 and HGX B300 data sheets, 2025, as others quote it"),
          blackwell("gb200-186gb", 100, 186_GiB,
                    {.fp64 = 40'000,
                     .fp32 = 80'000,
                     .tf32 = 1'250'000,
                     .half = 2'500'000,
                     .has_fp64_tensor_cores = true},
                    "NVIDIA GB200 NVL72 data sheet, 2024"),
          card("rtx-5090", 120, 32_GiB, 1'792, {.fp32 = 104'800, .tf32 = 104'800, .half = 209'500},
               "NVIDIA RTX Blackwell GPU Architecture white paper, 2025, as others quote it")};
}

}  // namespace

const std::vector<DeviceModel>& device_presets() {
  static const std::vector<DeviceModel> all = [] {
    std::vector<DeviceModel> devices = older_devices();
    std::ranges::move(middle_devices(), std::back_inserter(devices));
    std::ranges::move(newest_devices(), std::back_inserter(devices));
    std::ranges::move(other_accelerators(), std::back_inserter(devices));
    devices.push_back(cpu());
    return devices;
  }();
  return all;
}

std::optional<DeviceModel> device_preset(std::string_view name) {
  const std::vector<DeviceModel>& models = device_presets();
  const auto found = std::ranges::find(models, name, &DeviceModel::name);
  return found == models.end() ? std::nullopt : std::optional(*found);
}

bool has_nvlink(std::string_view device) {
  return device.find("-sxm") != std::string_view::npos || device.starts_with("gb200");
}

}  // namespace lockstep
