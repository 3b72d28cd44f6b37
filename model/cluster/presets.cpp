#include "model/cluster/presets.hpp"

namespace lockstep {

namespace {

constexpr BytesPerSecond gigabytes_per_second(int64_t count) {
  return BytesPerSecond(1'000'000'000) * count;
}
constexpr BytesPerSecond gigabits_per_second(int64_t count) {
  return BytesPerSecond(125'000'000) * count;
}
constexpr FlopsPerSecond gigaflops_per_second(int64_t count) {
  return FlopsPerSecond(1'000'000'000) * count;
}

/// PCI Express base specifications: 8, 16, 32 GT/s per lane, 128b/130b coding, 16 lanes.
constexpr BytesPerSecond pcie_x16(int64_t gigatransfers) {
  return BytesPerSecond(gigatransfers * 16 * 1'000'000'000 / 8 * 128 / 130);
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
          .compute_capability = compute_capability,
          .memory = memory,
          .memory_bandwidth = bandwidth,
          .memory_efficiency = 0.85,
          .launch_overhead = 5_us,
          .source = source,
          .assumption = efficiency_assumption};
}

DeviceModel v100(const char* name, Bytes memory) {
  DeviceModel device = gpu(name, 70, memory, gigabytes_per_second(900),
                           "NVIDIA V100 Tensor Core GPU data sheet, 2020 (SXM2)");
  set_speed(device, DType::fp64, vector_units(7'800));
  set_speed(device, DType::fp32, vector_units(15'700));
  set_speed(device, DType::fp16, tensor_cores(125'000));
  return device;  // no bf16: it came with Ampere
}

DeviceModel a100(const char* name, Bytes memory, BytesPerSecond bandwidth) {
  DeviceModel device =
      gpu(name, 80, memory, bandwidth, "NVIDIA A100 Tensor Core GPU data sheet, 2021 (SXM4)");
  set_speed(device, DType::fp64, tensor_cores(19'500));
  set_speed(device, DType::fp32, vector_units(19'500));
  set_speed(device, DType::bf16, tensor_cores(312'000));
  set_speed(device, DType::fp16, tensor_cores(312'000));
  device.tf32 = tensor_cores(156'000);
  return device;
}

/// The data sheet states tensor-core rates with sparsity: dense is half.
DeviceModel h100() {
  DeviceModel device = gpu("h100-sxm5-80gb", 90, 80_GiB, gigabytes_per_second(3'350),
                           "NVIDIA H100 Tensor Core GPU data sheet, 2023 (SXM5)");
  set_speed(device, DType::fp64, tensor_cores(67'000));
  set_speed(device, DType::fp32, vector_units(67'000));
  set_speed(device, DType::bf16, tensor_cores(989'500));
  set_speed(device, DType::fp16, tensor_cores(989'500));
  device.tf32 = tensor_cores(494'500);
  return device;
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

// ---- nodes ----

/// Eight GPUs, two sockets, two GPUs a PCIe switch: common to all three DGX generations.
NodeModel dgx(const char* name, DeviceModel device, const char* source) {
  return {.name = name,
          .device = std::move(device),
          .devices = 8,
          .devices_per_pcie_switch = 2,
          .sockets = 2,
          .source = source,
          .assumption = "latencies of links and network"};
}

/// NVLink of DGX-1V: six links of 25 GB/s per GPU in a hybrid cube mesh. The link between sockets
/// is what NCCL's src/graph/topo.h counts for the Xeon E5 v4 (Broadwell).
Cluster dgx_1v(const char* name, DeviceModel device) {
  Cluster cluster{
      .name = name,
      .node = dgx(name, std::move(device),
                  "NVIDIA DGX-1 with Tesla V100 System Architecture white paper, 2017")};
  NodeModel& node = cluster.node;
  node.nvlink = gigabytes_per_second(150);
  node.nvlinks = 6;
  node.nvlink_pairs = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                       {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                       {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  node.pcie = pcie_x16(8);
  node.nics = 4;
  node.socket_link = gigabytes_per_second(6);
  node.cpu_cores = 40;
  node.memory = 512_GiB;
  node.disk = gigabytes_per_second(2);
  node.assumption = "latencies of links and network; disk (four SATA drives striped)";
  cluster.network = {gigabits_per_second(100), 1500_ns};
  return cluster;
}

/// Six NVSwitches; the link between sockets is NCCL's figure for AMD EPYC.
Cluster dgx_a100(const char* name, DeviceModel device, Bytes memory) {
  Cluster cluster{
      .name = name,
      .node = dgx(name, std::move(device), "NVIDIA DGX A100 data sheet, 2020 and 2021")};
  NodeModel& node = cluster.node;
  node.nvlink = gigabytes_per_second(300);
  node.nvlinks = 12;
  node.pcie = pcie_x16(16);
  node.nics = 8;
  node.socket_link = gigabytes_per_second(16);
  node.cpu_cores = 128;
  node.memory = memory;
  node.disk = gigabytes_per_second(25);
  cluster.network = {gigabits_per_second(200), 1500_ns};
  return cluster;
}

/// Four NVSwitches; the link between sockets is NCCL's figure for Sapphire Rapids.
Cluster dgx_h100() {
  Cluster cluster{.name = "dgx-h100",
                  .node = dgx("dgx-h100", h100(), "NVIDIA DGX H100 data sheet, 2023")};
  NodeModel& node = cluster.node;
  node.nvlink = gigabytes_per_second(450);
  node.nvlinks = 18;
  node.pcie = pcie_x16(32);
  node.nics = 8;
  node.socket_link = gigabytes_per_second(22);
  node.cpu_cores = 112;
  node.memory = Bytes(2048) * 1'073'741'824;
  node.disk = gigabytes_per_second(25);
  node.assumption = "latencies of links and network; disk as in DGX A100";
  cluster.network = {gigabits_per_second(400), 1500_ns};
  return cluster;
}

Cluster cpu_cluster() {
  Cluster cluster{.name = "cpu"};
  cluster.node = {.name = "cpu",
                  .device = cpu(),
                  .devices = 8,
                  .pcie = gigabytes_per_second(4),
                  .nics = 1,
                  .cpu_cores = 8,
                  .memory = 128_GiB,
                  .disk = gigabytes_per_second(1),
                  .source = "none",
                  .assumption = "all figures; ranks talk over loopback at 4 GB/s"};
  cluster.network = {gigabits_per_second(10), 25_us};
  return cluster;
}

template <class Model>
std::optional<Model> named(std::vector<Model> models, std::string_view name) {
  for (Model& model : models) {
    if (model.name == name) {
      return std::move(model);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<DeviceModel> device_presets() {
  return {v100("v100-sxm2-16gb", 16_GiB),
          v100("v100-sxm2-32gb", 32_GiB),
          a100("a100-sxm4-40gb", 40_GiB, gigabytes_per_second(1'555)),
          a100("a100-sxm4-80gb", 80_GiB, gigabytes_per_second(2'039)),
          h100(),
          cpu()};
}

std::optional<DeviceModel> device_preset(std::string_view name) {
  return named(device_presets(), name);
}

std::vector<Cluster> cluster_presets() {
  return {dgx_1v("dgx-1v", *device_preset("v100-sxm2-32gb")),
          dgx_1v("dgx-1v-16gb", *device_preset("v100-sxm2-16gb")),
          dgx_a100("dgx-a100", *device_preset("a100-sxm4-80gb"), Bytes(2048) * 1'073'741'824),
          dgx_a100("dgx-a100-40gb", *device_preset("a100-sxm4-40gb"), Bytes(1024) * 1'073'741'824),
          dgx_h100(),
          cpu_cluster()};
}

std::optional<Cluster> cluster_preset(std::string_view name) {
  return named(cluster_presets(), name);
}

Cluster flat_cluster(int ranks, BytesPerSecond bandwidth, Time latency) {
  Cluster cluster{.name = "flat", .nodes = ranks};
  cluster.node.name = "flat";
  cluster.node.device = cpu();
  cluster.node.pcie = bandwidth;
  cluster.node.nics = 1;
  cluster.node.latencies.host_memory = Time(0);
  cluster.network = {bandwidth, latency};
  return cluster;
}

}  // namespace lockstep
