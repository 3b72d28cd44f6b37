#pragma once

#include <memory>

#include "model/metric/metric.hpp"

namespace lockstep {

/// RunningMean and RunningSum: the last `window` updates of a metric whose states are sums. Each
/// state is kept once for each of them, and their sums are what ranks exchange, at every compute
/// (TorchMetrics wrappers/running.py).
std::unique_ptr<const Metric> make_running(std::unique_ptr<const Metric> base, int64_t window);

}  // namespace lockstep
