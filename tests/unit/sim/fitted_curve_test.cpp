#include "sim/fitted_curve.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;
using namespace lockstep::sim;

namespace fitted_curve_test {

namespace {

MeasuredTime exactly(Time time) { return {time, time, time}; }

/// 10 us + flops at 1 GFLOP/s + bytes at 1 GB/s.
KernelPoint point(int64_t flops, int64_t bytes) {
  return {Flops(flops), Bytes(bytes), exactly(10_us + 1_ns * flops + 1_ns * bytes)};
}

TransferPoint transfer(int64_t bytes, Time time) { return {Bytes(bytes), exactly(time)}; }

HeldOut held_out(HeldOut::Part part, Time measured, Time predicted) {
  return {part, "training", measured, predicted};
}

}  // namespace

TEST_CASE("a fit finds the coefficients that points were made from") {
  const auto fitted = fit({point(1000, 500), point(50'000, 1000), point(200'000, 90'000),
                           point(1'000'000, 20'000), point(0, 300'000)});
  REQUIRE(fitted);
  CHECK(fitted->overhead == Approx(10e-6));
  CHECK(fitted->per_flop == Approx(1e-9));
  CHECK(fitted->per_byte == Approx(1e-9));
  CHECK(fitted->seconds(Flops(100'000), Bytes(100'000)) == Approx(210e-6));
}

TEST_CASE("kernels without FLOPs are fitted by their bytes alone") {
  const auto fitted = fit({point(0, 1000), point(0, 100'000), point(0, 1'000'000)});
  REQUIRE(fitted);
  CHECK(fitted->per_flop == 0);
  CHECK(fitted->overhead == Approx(10e-6));
  CHECK(fitted->per_byte == Approx(1e-9));
}

TEST_CASE("no coefficient of a fit is negative") {
  // More bytes, less time: the best that is legal is a constant.
  const auto fitted = fit({{Flops(0), Bytes(1000), exactly(30_us)},
                           {Flops(0), Bytes(2000), exactly(20_us)},
                           {Flops(0), Bytes(3000), exactly(10_us)}});
  REQUIRE(fitted);
  CHECK(fitted->per_byte == 0);
  // Least squares of c/30-1, c/20-1, c/10-1: c = (1/30+1/20+1/10) / (1/900+1/400+1/100).
  CHECK(fitted->overhead ==
        Approx((1 / 30.0 + 1 / 20.0 + 1 / 10.0) / (1 / 900.0 + 1 / 400.0 + 1 / 100.0) * 1e-6));
}

TEST_CASE("too few points, and points that took no time, give no fit") {
  CHECK_FALSE(fit({point(1, 1), point(2, 2)}));
  CHECK_FALSE(fit({point(1, 1), point(2, 2), {Flops(3), Bytes(3), exactly(Time{})}}));
}

TEST_CASE("between two sizes a transfer is on the straight line") {
  const std::vector<TransferPoint> points = {transfer(100, 10_us), transfer(200, 30_us),
                                             transfer(400, 40_us)};
  CHECK(interpolate(points, 0_B) == Approx(10e-6));
  CHECK(interpolate(points, 150_B) == Approx(20e-6));
  CHECK(interpolate(points, 200_B) == Approx(30e-6));
  CHECK(interpolate(points, 300_B) == Approx(35e-6));
  CHECK(interpolate(points, 800_B) == Approx(60e-6));  // by the last slope
  CHECK(interpolate({transfer(100, 10_us)}, 1_MiB) == Approx(10e-6));
}

TEST_CASE("behind a last point that fell by noise, more bytes take no less time") {
  const std::vector<TransferPoint> points = {transfer(100, 30_us), transfer(200, 20_us)};
  CHECK(interpolate(points, 150_B) == Approx(25e-6));
  CHECK(interpolate(points, 1_MiB) == Approx(20e-6));
}

TEST_CASE("a range holds the 5 % and 95 % quantiles of its own part, and 1") {
  std::vector<HeldOut> all;
  for (int64_t tenth = 1; tenth <= 20; ++tenth) {  // ratios 0.1, 0.2 .. 2.0
    all.push_back(held_out(HeldOut::Part::compute, 1_us * tenth, 10_us));
  }
  all.push_back(held_out(HeldOut::Part::communication, 30_us, 10_us));
  const RangeFactors compute = range_of(all, HeldOut::Part::compute);
  CHECK(compute.low == Approx(0.1));   // the 1st of 20
  CHECK(compute.high == Approx(1.9));  // the 19th
  const RangeFactors communication = range_of(all, HeldOut::Part::communication);
  CHECK(communication.low == 1);
  CHECK(communication.high == Approx(3));
  CHECK(range_of({}, HeldOut::Part::compute).low == 1);
  CHECK(range_of({}, HeldOut::Part::compute).high == 1);
}

}  // namespace fitted_curve_test
