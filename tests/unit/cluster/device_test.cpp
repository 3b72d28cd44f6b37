#include "model/cluster/device.hpp"

#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"

using namespace lockstep;

namespace device_test {

namespace {

DeviceModel plain_device() {
  DeviceModel device{.memory_bandwidth = 1000_GBps};
  device.speeds[static_cast<size_t>(DType::fp32)] = ComputeSpeed{1_TFLOPps, {}};
  return device;
}

}  // namespace

TEST_CASE("a roofline takes the longer of computing and moving") {
  const DeviceModel device = plain_device();
  CHECK(roofline_time(device, DType::fp32, Flops(1'000'000'000), Bytes(0)) == 1_ms);
  CHECK(roofline_time(device, DType::fp32, Flops(1'000'000'000), Bytes(2'000'000'000)) == 2_ms);
  CHECK(roofline_time(device, DType::fp32, Flops(0), Bytes(0)) == Time(0));
}

TEST_CASE("an efficiency curve reaches half of its ceiling at its half size") {
  const EfficiencyCurve curve{0.8, Flops(1000)};
  CHECK(curve.fraction(Flops(1000)) == Approx(0.4));
  CHECK(curve.fraction(Flops(1'000'000'000)) == Approx(0.8).epsilon(1e-5));
  CHECK(EfficiencyCurve{}.fraction(Flops(1)) == 1);
}

TEST_CASE("a type that the hardware lacks runs at the speed of fp32") {
  const DeviceModel v100 = device_preset("v100-sxm2-16gb").value();
  CHECK_FALSE(v100.supports(DType::bf16));
  CHECK(v100.speed(DType::bf16).peak == v100.speed(DType::fp32).peak);
  CHECK(v100.speed(DType::fp16).peak == 125_TFLOPps);
}

TEST_CASE("every type has a speed") {
  const DeviceModel a100 = device_preset("a100-sxm4-80gb").value();
  for (int type = 0; type < dtype_count; ++type) {
    CHECK(a100.speed(static_cast<DType>(type)).peak >= a100.speed(DType::fp32).peak);
  }
  CHECK_FALSE(a100.supports(DType::int32));
  CHECK_FALSE(a100.supports(DType::uint8));
  CHECK(a100.speed(DType::uint8).peak == a100.speed(DType::fp32).peak);
}

TEST_CASE("device presets have their data sheets' peaks") {
  CHECK(device_preset("a100-sxm4-80gb")->speed(DType::bf16).peak == 312_TFLOPps);
  CHECK(device_preset("a100-sxm4-40gb")->memory_bandwidth == 1555_GBps);
  CHECK(device_preset("h100-sxm5-80gb")->memory == 80_GiB);
  CHECK(device_preset("h100-sxm5-80gb")->memory_bandwidth == 3350_GBps);
  // NVIDIA T4 product brief, L4 data sheet (FP16 with sparsity 242), Ada and GA102 white papers.
  CHECK(device_preset("t4")->speed(DType::fp16).peak == 65_TFLOPps);
  CHECK_FALSE(device_preset("t4")->supports(DType::bf16));
  CHECK(device_preset("l4")->speed(DType::bf16).peak == 121_TFLOPps);
  CHECK(device_preset("rtx-4090")->memory_bandwidth == 1008_GBps);
  CHECK(device_preset("rtx-3090")->speed(DType::fp16).peak == 71_TFLOPps);
  CHECK(device_preset("h200-sxm-141gb")->memory_bandwidth == 4800_GBps);
  CHECK(device_preset("h200-sxm-141gb")->speed(DType::bf16).peak ==
        device_preset("h100-sxm5-80gb")->speed(DType::bf16).peak);
}

TEST_CASE("every preset is possible and says where its figures are from") {
  for (const Cluster& cluster : cluster_presets()) {
    INFO(cluster.name);
    CHECK(errors_of(cluster).empty());
    CHECK_FALSE(cluster.node.source.empty());
    CHECK_FALSE(cluster.node.assumption.empty());
    CHECK_FALSE(cluster.node.device.source.empty());
    CHECK_FALSE(cluster.node.device.assumption.empty());
  }
  CHECK(cluster_preset("dgx-a100")->network.bandwidth == 25_GBps);  // 200 Gb/s
  CHECK(cluster_preset("dgx-h100")->network.bandwidth == 50_GBps);  // 400 Gb/s
  CHECK(cluster_preset("dgx-2")->node.devices == 16);
  CHECK(cluster_preset("p3.16xlarge")->network.bandwidth ==
        BytesPerSecond(3'125'000'000));  // 25 Gb/s
  CHECK(cluster_preset("p4d.24xlarge")->node.nics == 4);
  CHECK(cluster_preset("nd96asr-v4")->network.bandwidth == 25_GBps);
}

}  // namespace device_test
