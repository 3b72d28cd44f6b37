#include "model/cluster/device.hpp"

#include <algorithm>
#include <cmath>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

/// `rate` times a fraction, at least 1 so that every time is finite.
template <class Rate>
Rate part_of(Rate rate, double fraction) {
  return Rate(std::max<int64_t>(1, std::llround(static_cast<double>(rate.count()) * fraction)));
}

}  // namespace

double EfficiencyCurve::fraction(Flops flops) const {
  if (half == Flops(0)) {
    return ceiling;
  }
  const auto size = static_cast<double>(flops.count());
  return ceiling * size / (size + static_cast<double>(half.count()));
}

const ComputeSpeed& DeviceModel::speed(DType dtype) const {
  for (const DType candidate : {dtype, DType::fp32, DType::fp64}) {
    const auto& speed = speeds[static_cast<size_t>(candidate)];
    if (speed) {
      return *speed;
    }
  }
  abort_for_bug("a device computes on fp32 or fp64", std::source_location::current());
}

Time roofline_time(const DeviceModel& device, DType dtype, Flops flops, Bytes moved) {
  Time compute;
  if (flops > Flops(0)) {
    const ComputeSpeed& speed = device.speed(dtype);
    compute = flops / part_of(speed.peak, speed.efficiency.fraction(flops));
  }
  Time memory;
  if (moved > Bytes(0)) {
    memory = moved / part_of(device.memory_bandwidth, device.memory_efficiency);
  }
  return std::max(compute, memory);
}

}  // namespace lockstep
