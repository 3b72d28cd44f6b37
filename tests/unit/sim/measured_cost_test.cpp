#include "sim/measured_cost.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "model/cluster/presets.hpp"
#include "sim/build_costs.hpp"

using namespace lockstep;
using namespace lockstep::sim;

namespace measured_cost_test {

namespace {

MeasuredTime exactly(Time time) { return {time, time, time}; }

/// A scale of 5 us and 1 ns a byte on fp32, and twice that among four ranks; an all_reduce of two
/// ranks that takes 100 us for 1 KB and 300 us for 2 KB.
Calibration calibration() {
  Calibration made;
  for (const int32_t ranks : {2, 4}) {
    KernelCurve curve{Kernel::scale, std::nullopt, DType::fp32, ranks, {}};
    for (const int64_t bytes : {1000, 10'000, 100'000}) {
      const Time time = (5_us + 1_ns * bytes) * (ranks / 2);
      curve.points.push_back({Flops(0), Bytes(bytes), exactly(time)});
    }
    made.kernels.push_back(curve);
  }
  made.transfers.push_back(
      {OpKind::all_reduce, 2, {{Bytes(1000), exactly(100_us)}, {Bytes(2000), exactly(300_us)}}});
  made.transfers.push_back({OpKind::copy, 2, {{Bytes(8), exactly(7_us)}}});
  made.launch_overheads = {{2, exactly(3_us)}};
  made.held_out = {{HeldOut::Part::compute, "a", 8_us, 10_us},
                   {HeldOut::Part::compute, "b", 15_us, 10_us},
                   {HeldOut::Part::communication, "a", 5_us, 10_us},
                   {HeldOut::Part::communication, "b", 20_us, 10_us}};
  return made;
}

Costs costs_of(const Calibration& measured, int32_t ranks, RangeEnd end = RangeEnd::nominal) {
  CostOptions options;
  options.world_size = ranks;
  options.algorithms = CollectiveAlgorithms::gloo;
  options.calibration = &measured;
  options.end = end;
  CostsResult result = build_costs(*cluster_preset("cpu"), options);
  REQUIRE(result.errors.empty());
  return std::move(result.costs);
}

Op scale_of(int64_t bytes) {
  Op op;
  op.kind = OpKind::compute;
  op.kernel = Kernel::scale;
  op.dtype = DType::fp32;
  op.bytes = Bytes(bytes);
  return op;
}

Time duration(const Costs& costs, const Op& op) { return costs.compute->duration(op, {}, {}); }

/// What a plan takes alone on the network of these costs.
Time alone(Costs& costs, const TransferPlan& plan) {
  Time slowest;
  for (size_t place = 0; plan.links != nullptr && place < plan.links->size(); ++place) {
    const int64_t weight = plan.weights == nullptr ? 1 : int64_t{(*plan.weights)[place]};
    slowest = std::max(
        slowest, plan.volume * weight / costs.pricing().link_capacities()[(*plan.links)[place]]);
  }
  return plan.latency + slowest;
}

TransferPlan all_reduce(Costs& costs, int64_t bytes, std::span<const int32_t> members) {
  return costs.pricing().collective({OpKind::all_reduce, Bytes(bytes), members, 0, 0});
}

}  // namespace

TEST_CASE("a measured kernel takes what was fitted, with the nearest number of ranks") {
  const Calibration measured = calibration();
  const Costs two = costs_of(measured, 2);
  CHECK(duration(two, scale_of(50'000)) == 55_us);
  CHECK(duration(costs_of(measured, 1), scale_of(50'000)) == 55_us);
  CHECK(duration(costs_of(measured, 4), scale_of(50'000)) == 110_us);
  CHECK(duration(costs_of(measured, 3), scale_of(50'000)) == 110_us);  // 4/3 is nearer than 3/2
  CHECK(two.launch_overhead == 3_us);
  CHECK(two.measured_compute->not_measured().empty());
}

TEST_CASE("what was not measured is priced by the data sheet, and reported") {
  const Calibration measured = calibration();
  Costs costs = costs_of(measured, 2);
  Op other = scale_of(16'000);
  other.dtype = DType::fp64;
  CHECK(duration(costs, other) == 1_us);  // 16 KB at 80 % of 20 GB/s
  CHECK(costs.measured_compute->not_measured() == std::set<std::string>{"scale on fp64"});
  Op timed = scale_of(0);
  timed.kernel = Kernel::timed;
  timed.work = 42;
  CHECK(duration(costs, timed) == 42_ps);
  const int32_t members[] = {0, 1};
  const TransferPlan modelled =
      costs.communication->collective({OpKind::broadcast, Bytes(1000), members, 0, 0});
  const TransferPlan plan =
      costs.pricing().collective({OpKind::broadcast, Bytes(1000), members, 0, 0});
  CHECK(plan.latency == modelled.latency);
  CHECK(plan.volume == modelled.volume);
  CHECK(costs.measured_communication->not_measured() ==
        std::set<std::string>{"broadcast of 2 ranks"});
}

TEST_CASE("a measured collective takes the curve alone and keeps the links") {
  const Calibration measured = calibration();
  Costs costs = costs_of(measured, 2);
  const int32_t members[] = {0, 1};
  CHECK(alone(costs, all_reduce(costs, 10, members)) == 100_us);
  CHECK(alone(costs, all_reduce(costs, 1500, members)) == 200_us);
  CHECK(alone(costs, all_reduce(costs, 2000, members)) == 300_us);
  const TransferPlan plan = all_reduce(costs, 2000, members);
  CHECK(plan.links != nullptr);
  // 200 us of it on the links; a volume is a whole number of bytes, a quarter of a ns each.
  CHECK(seconds(plan.latency) == Approx(100e-6).epsilon(1e-5));
  CHECK(costs.pricing().copy(0, host_device, DeviceId{0}, Bytes(64)).latency == 7_us);
}

TEST_CASE("a collective of other numbers of ranks, or over nodes, is not the measured one") {
  const Calibration measured = calibration();
  Costs three = costs_of(measured, 3);
  const int32_t members[] = {0, 1, 2};
  all_reduce(three, 1000, members);
  CHECK(three.measured_communication->not_measured() ==
        std::set<std::string>{"all_reduce of 3 ranks"});
  CostOptions options;
  options.world_size = 2;
  options.ranks_per_node = 1;
  options.calibration = &measured;
  Cluster cluster = *cluster_preset("cpu");
  cluster.nodes = 2;
  Costs apart = std::move(build_costs(cluster, options).costs);
  const int32_t pair[] = {0, 1};
  all_reduce(apart, 1000, pair);
  CHECK(apart.measured_communication->not_measured() ==
        std::set<std::string>{"all_reduce of 2 ranks over several nodes"});
}

TEST_CASE("the ends of the range multiply measured times, of each part by its own factor") {
  const Calibration measured = calibration();
  const int32_t members[] = {0, 1};
  Costs low = costs_of(measured, 2, RangeEnd::low);
  CHECK(duration(low, scale_of(50'000)) == 44_us);  // 0.8
  CHECK(alone(low, all_reduce(low, 2000, members)) == 150_us);
  CHECK(low.launch_overhead == Time(2'400'000));
  Costs high = costs_of(measured, 2, RangeEnd::high);
  CHECK(duration(high, scale_of(50'000)) == Time(82'500'000));  // 1.5
  CHECK(alone(high, all_reduce(high, 2000, members)) == 600_us);
}

TEST_CASE("latency that a fault adds comes on top of a measured collective") {
  const Calibration measured = calibration();
  Costs costs = costs_of(measured, 2);
  const int32_t members[] = {0, 1};
  const LinkIndex link = all_reduce(costs, 2000, members).links->front();
  const Time before = alone(costs, all_reduce(costs, 2000, members));
  const Time modelled =
      costs.communication->collective({OpKind::all_reduce, Bytes(2000), members, 0, 0}).latency;
  costs.pricing().add_latency(link, 9_us);
  const Time added =
      costs.communication->collective({OpKind::all_reduce, Bytes(2000), members, 0, 0}).latency -
      modelled;
  CHECK(added > Time{});
  CHECK(alone(costs, all_reduce(costs, 2000, members)) == before + added);
}

TEST_CASE("the nearest number of measured ranks is by ratio, of two the larger") {
  CHECK(nearest_ranks({1, 8}, 2) == 1);
  CHECK(nearest_ranks({1, 8}, 4) == 8);
  CHECK(nearest_ranks({1, 4}, 2) == 4);
  CHECK(nearest_ranks({2}, 100) == 2);
}

}  // namespace measured_cost_test
