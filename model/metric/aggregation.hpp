#pragma once

#include <memory>

#include "model/metric/metric.hpp"

namespace lockstep {

/// MeanMetric, SumMetric, MaxMetric, MinMetric and CatMetric (TorchMetrics aggregation.py).
enum class Aggregation : uint8_t { mean, sum, max, min, cat };
/// Treatment of nan: dropped (`warn`, `ignore`), raised on, let through, or replaced.
struct NanStrategy {
  enum class Kind : uint8_t { drop, error, disable, replace };
  Kind kind = Kind::drop;
  float replacement = 0;
};
std::unique_ptr<const Metric> make_aggregation(Aggregation aggregation, const NanStrategy& nan);

}  // namespace lockstep
