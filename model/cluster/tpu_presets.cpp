// TPUs, and Apple's GPU. A device of XLA is a core of a v2 or v3 chip, and a whole chip from v4 on
// (torch_xla on PJRT). Rates of cores are half of their chip's.
#include <algorithm>

#include "model/cluster/preset_parts.hpp"

namespace lockstep {

namespace {

constexpr const char* uncalibrated =
    "that large matrix products reach 60 % of the peak, half of that at a size which the peak "
    "computes in 20 us, and 85 % of the memory bandwidth; XLA's fusion is not modelled: nothing "
    "here was measured on a TPU";

// XLA multiplies fp32 in bf16 with sums in fp32 by default, so that both have one rate.
DeviceModel tpu(const char* name, int64_t gigaflops, Bytes memory, int64_t gigabytes,
                const char* source) {
  DeviceModel device{.name = name,
                     .type = DeviceType::tpu,
                     .memory = memory,
                     .memory_bandwidth = gigabytes_per_second(gigabytes),
                     .memory_efficiency = 0.85,
                     .launch_overhead = 5_us,
                     .source = source,
                     .assumption = uncalibrated};
  const ComputeSpeed speed{FlopsPerSecond(1'000'000'000) * gigaflops,
                           {0.6, Flops(gigaflops * 20'000)}};
  device.speeds[static_cast<size_t>(DType::bf16)] = speed;
  device.speeds[static_cast<size_t>(DType::fp32)] = speed;
  return device;
}

// 76 cores of the GPU, with all of the memory, which the CPU shares.
DeviceModel m2_ultra() {
  DeviceModel device{
      .name = "m2-ultra",
      .type = DeviceType::mps,
      .memory = 192_GiB,
      .memory_bandwidth = gigabytes_per_second(800),
      .memory_efficiency = 0.85,
      .launch_overhead = 10_us,
      .source = "Apple newsroom, June 2023 (memory); 27.2 TFLOP/s in fp32 as others quote it",
      .assumption =
          "that kernels reach 60 % of the peak, the same peak in 16 bits, memory that "
          "the CPU does not use, and launch overhead: nothing here was measured on "
          "Apple's GPUs"};
  constexpr int64_t gigaflops = 27'200;
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
    device.speeds[static_cast<size_t>(dtype)] =
        ComputeSpeed{FlopsPerSecond(1'000'000'000) * gigaflops, {0.6, Flops(gigaflops * 5'000)}};
  }
  return device;
}

/// What a virtual machine of Google has beside its chips.
struct TpuHost {
  int devices = 8;
  int cores = 48;  ///< half of its vCPUs
  Bytes memory{};
  int nics = 1;
  int64_t gigabits = 100;  ///< of a NIC to the data center network
};

// The time of a hop is that of ASTRA-sim's validation on TPU v3 (astra-sim.github.io, "Validation
// on Google's TPU-v3"), which has it from the TPU research team.
InterChipLinks links_of(BytesPerSecond rate, int links, int dimensions, int ring_from) {
  return {
      .rate = rate, .links = links, .dimensions = dimensions, .ring_from = ring_from, .hop = 1_us};
}

Cluster slice(const char* name, const char* device, const TpuHost& host,
              const InterChipLinks& links, const char* source) {
  Cluster cluster{.name = name};
  cluster.node = {.name = name,
                  .device = *device_preset(device),
                  .devices = host.devices,
                  .chip_links = links,
                  .pcie = pcie_x16(8),
                  .nics = host.nics,
                  .cpu = HostCpu::amd,
                  .cpu_cores = host.cores,
                  .memory = host.memory,
                  .disk = gigabytes_per_second(1),
                  .source = source,
                  .assumption =
                      "PCIe 3.0 x16 for each device, disk, the time of a hop between "
                      "chips"};
  cluster.network = {gigabits_per_second(host.gigabits), 25_us};
  cluster.network.fabric = Fabric::tcp;
  return cluster;
}

constexpr const char* of_v2_and_v3 =
    "Jouppi et al., A Domain-Specific Supercomputer for Training Deep Neural Networks, 2020 "
    "(v2: four links of 496 Gb/s, v3: of 656 Gb/s), as others quote it";

}  // namespace

std::vector<DeviceModel> other_accelerators() {
  return {tpu("tpu-v2-core", 23'000, 8_GiB, 350, of_v2_and_v3),
          tpu("tpu-v3-core", 61'500, 16_GiB, 450,
              "Google Cloud TPU documentation, v3 (123 TFLOP/s, 32 GiB, 900 GB/s per chip)"),
          tpu("tpu-v4", 275'000, 32_GiB, 1'200, "Google Cloud TPU documentation, v4"),
          tpu("tpu-v5e", 197'000, 16_GiB, 819, "Google Cloud TPU documentation, v5e"),
          tpu("tpu-v5p", 459'000, 95_GiB, 2'765, "Google Cloud TPU documentation, v5p"),
          tpu("tpu-v6e", 918'000, 32_GiB, 1'600, "Google Cloud TPU documentation, v6e"),
          m2_ultra()};
}

// Ends of an edge are joined in whole pods of v2 (16 x 16 chips), v3 (32 x 32), v5e and v6e
// (16 x 16), and from 4 chips on in v4 and v5p (Google Cloud TPU documentation of each).
std::vector<Cluster> tpu_presets() {
  InterChipLinks v2 = links_of(gigabits_per_second(496), 4, 2, 16);
  InterChipLinks v3 = links_of(gigabits_per_second(656), 4, 2, 32);
  v2.cores = v3.cores = 2;
  return {
      slice("tpu-v2-8", "tpu-v2-core", {8, 48, 334_GiB}, v2, of_v2_and_v3),
      slice("tpu-v3-8", "tpu-v3-core", {8, 48, 334_GiB}, v3, of_v2_and_v3),
      slice("tpu-v4-8", "tpu-v4", {4, 120, 400_GiB}, links_of(gigabytes_per_second(50), 6, 3, 4),
            "Jouppi et al., TPU v4, 2023 (six links of 50 GB/s a chip), as others quote it"),
      slice("tpu-v5e-8", "tpu-v5e", {8, 112, 512_GiB, 2},
            links_of(gigabytes_per_second(50), 4, 2, 16),
            "Google Cloud TPU documentation, v5e (400 GB/s of four links, both directions)"),
      slice("tpu-v5p-8", "tpu-v5p", {4, 104, 448_GiB, 1, 200},
            links_of(gigabytes_per_second(100), 6, 3, 4),
            "Google Cloud TPU documentation, v5p (1200 GB/s of six links, both directions)"),
      slice("tpu-v6e-8", "tpu-v6e", {8, 90, 1536_GiB, 4, 200},
            links_of(gigabytes_per_second(100), 4, 2, 16),
            "Google Cloud TPU documentation, v6e (3200 Gb/s of four links)"),
  };
}

Cluster apple_m2_ultra() {
  Cluster cluster{.name = "apple-m2-ultra"};
  cluster.node = {.name = "apple-m2-ultra",
                  .device = *device_preset("m2-ultra"),
                  .pcie = gigabytes_per_second(400),
                  .nics = 1,
                  .cpu = HostCpu::arm,
                  .cpu_cores = 24,
                  .memory = 192_GiB,
                  .disk = gigabytes_per_second(5),
                  .source = "Apple newsroom, June 2023",
                  .assumption = "copies within the memory at half of its rate, and the drive"};
  cluster.network = {gigabits_per_second(10), 25_us};
  cluster.network.fabric = Fabric::tcp;
  return cluster;
}

}  // namespace lockstep
