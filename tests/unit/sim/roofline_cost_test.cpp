#include "sim/roofline_cost.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;
using namespace lockstep::literals;

namespace roofline_cost_test {

namespace {

/// 100 TFLOP/s on fp16 and 10 on fp32, of which half is reached; 1000 GB/s, of which 80 %.
DeviceModel device() {
  DeviceModel model;
  model.memory_bandwidth = 1000_GBps;
  model.memory_efficiency = 0.8;
  model.speeds[static_cast<size_t>(DType::fp16)] = ComputeSpeed{100_TFLOPps, {0.5, Flops(0)}};
  model.speeds[static_cast<size_t>(DType::fp32)] = ComputeSpeed{10_TFLOPps, {0.5, Flops(0)}};
  return model;
}

/// A tenth of the device's memory speed.
DeviceModel host() {
  DeviceModel model = device();
  model.memory_bandwidth = 100_GBps;
  return model;
}

Op kernel(Kernel name, const OpLists* lists = nullptr) {
  Op op;
  op.kind = OpKind::compute;
  op.kernel = name;
  op.lists = lists;
  return op;
}

Time price(const Op& op) {
  return sim::RooflineComputeCost(device(), host()).duration(op, RankId{0}, {});
}

sim::SlowedComputeCost slowed(std::vector<sim::Straggler> stragglers) {
  return {std::make_unique<sim::RooflineComputeCost>(device(), host()), std::move(stragglers)};
}

Op timed(Time duration) {
  Op op = kernel(Kernel::timed);
  op.work = duration.count();
  return op;
}

}  // namespace

TEST_CASE("a timed kernel takes the time it says") { CHECK(price(timed(3_us)) == 3_us); }

TEST_CASE("a kernel takes the longer of its arithmetic and its memory traffic") {
  Op op = kernel(Kernel::layer_forward);
  op.dtype = DType::fp16;
  op.work = 50'000'000'000;       // at 50 TFLOP/s: 1 ms
  op.bytes = Bytes(400'000'000);  // at 800 GB/s: 0.5 ms
  CHECK(price(op) == 1_ms);
  op.bytes = Bytes(1'600'000'000);
  CHECK(price(op) == 2_ms);
  op.dtype = DType::fp32;  // at 5 TFLOP/s: 10 ms
  CHECK(price(op) == 10_ms);
}

TEST_CASE("kernels that only move data cost their operands") {
  const Slice thousand = Slice::of_size(DType::fp32, 1000);
  const Slice half = Slice::of_size(DType::fp16, 1000);
  const Slice three[] = {thousand, thousand, thousand};
  const OpLists copies{{}, {&thousand, 1}, {&thousand, 1}, {}, {}};
  const OpLists casts{{}, {&thousand, 1}, {&half, 1}, {}, {}};
  const OpLists writes{{}, {}, {&thousand, 1}, {}, {}};
  const OpLists adam{{}, {&thousand, 1}, three, {}, {}};
  CHECK(sim::memory_traffic(kernel(Kernel::copy, &copies)) == 8000_B);
  CHECK(sim::memory_traffic(kernel(Kernel::cast, &casts)) == 6000_B);
  CHECK(sim::memory_traffic(kernel(Kernel::fill, &writes)) == 4000_B);
  CHECK(sim::memory_traffic(kernel(Kernel::scale, &writes)) == 8000_B);
  CHECK(sim::memory_traffic(kernel(Kernel::scale, &copies)) == 8000_B);
  CHECK(sim::memory_traffic(kernel(Kernel::add, &copies)) == 12000_B);
  CHECK(sim::memory_traffic(kernel(Kernel::adam_step, &adam)) == 28000_B);
  CHECK(price(kernel(Kernel::copy, &copies)) == 10_ns);  // 8000 bytes at 800 GB/s
}

TEST_CASE("work in the host's streams is done by the host") {
  Op op = kernel(Kernel::copy);
  op.bytes = Bytes(8'000'000);
  CHECK(price(op) == 10_us);
  op.stream = stream(queue::compute, host_device);
  CHECK(price(op) == 100_us);
}

TEST_CASE("a straggler is slow for the part of its work within the interval") {
  const sim::SlowedComputeCost cost = slowed({{1, 3, {Instant::Kind::time, 10_ms}, 10_ms}});
  const auto duration = [&cost](uint32_t rank, Time start) {
    return cost.duration(timed(4_ms), RankId{rank}, start);
  };
  CHECK(duration(0, 12_ms) == 4_ms);
  CHECK(duration(2, 12_ms) == 4_ms);
  CHECK(duration(1, 0_ms) == 4_ms);
  CHECK(duration(1, 6_ms) == 4_ms);  // ends as the interval begins
  CHECK(duration(1, 8_ms) == 8_ms);  // 2 ms, then the other 2 three times slower
  CHECK(duration(1, 10_ms) == 10_ms + 4_ms - Time(3'333'333'333));  // 10/3 ms done in 10 ms
  CHECK(duration(1, 17_ms) == 6_ms);  // 1 ms done in 3 ms, 3 ms at full speed
  CHECK(duration(1, 20_ms) == 4_ms);
}

TEST_CASE("a straggler without an end stays slow; overlapping intervals multiply") {
  const sim::SlowedComputeCost cost = slowed({{0, 2}, {0, 1.5, {Instant::Kind::time, 10_ms}}});
  CHECK(cost.duration(timed(2_ms), RankId{0}, 0_ms) == 4_ms);
  CHECK(cost.duration(timed(2_ms), RankId{0}, 50_ms) == 6_ms);
  CHECK(cost.duration(timed(4_ms), RankId{0}, 6_ms) == 10_ms);  // 2 ms in 4, 2 ms in 6
}

}  // namespace roofline_cost_test
