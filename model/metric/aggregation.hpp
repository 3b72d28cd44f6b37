#pragma once

#include <memory>
#include <optional>

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

/// RetrievalMAP: three lists that are gathered entry by entry, so ranks need equally many updates.
struct RetrievalOptions {
  enum class Empty : uint8_t { negative, positive, skip, error };
  enum class Over : uint8_t { mean, median, min, max };
  Empty empty_target_action = Empty::negative;
  Over aggregation = Over::mean;
  std::optional<int64_t> ignore_index{};
  std::optional<int64_t> top_k{};
};
std::unique_ptr<const Metric> make_retrieval_map(const RetrievalOptions& options);

/// Average precision of one query: mean over its relevant items of (relevant up to it) / position;
/// an item with a score of 0 or less is never relevant.
float query_average_precision(const Tensor& scores, const Tensor& relevance,
                              std::optional<int64_t> top_k);

}  // namespace lockstep
