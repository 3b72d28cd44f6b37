#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/metric/metric.hpp"

namespace lockstep {

/// One query's items: their scores, and how relevant each is.
struct Query {
  std::vector<float> scores;
  std::vector<float> relevance;
};

/// What a query scores; `top_k` looks at its best items only. TorchMetrics functional/retrieval.
enum class QueryFormula : uint8_t {
  average_precision,  ///< RetrievalMAP; an item with a score of 0 or less is never relevant
  reciprocal_rank,    ///< RetrievalMRR; the same
  normalized_gain,    ///< RetrievalNormalizedDCG; relevance may be graded, ties share their places
  precision,
  recall,
  hit_rate,
  fall_out,  ///< of irrelevant items; a query is empty where it has none of those
  r_precision,
  area_under_roc
};
struct QueryOptions {
  QueryFormula formula = QueryFormula::average_precision;
  std::optional<int64_t> top_k{};
  bool adaptive_k = false;         ///< precision: never more than the query has
  std::optional<float> max_fpr{};  ///< area_under_roc
};
float score_of(const Query& query, const QueryOptions& options);

/// Precision and recall of a query's best 1 .. max_k items.
struct QueryCurve {
  std::vector<float> precision;
  std::vector<float> recall;
  std::vector<int64_t> top_k;
};
QueryCurve curve_of(const Query& query, int64_t max_k, bool adaptive_k);

/// What becomes of queries without anything to find, and of the scores of all queries.
struct RetrievalOptions {
  enum class Empty : uint8_t { negative, positive, skip, error };
  enum class Over : uint8_t { mean, median, min, max };
  Empty empty_target_action = Empty::negative;
  Over aggregation = Over::mean;
  std::optional<int64_t> ignore_index{};
};

/// The retrieval metrics of one number: three lists that are gathered entry by entry, so ranks need
/// equally many updates.
std::unique_ptr<const Metric> make_retrieval(const QueryOptions& query,
                                             const RetrievalOptions& options);

/// RetrievalPrecisionRecallCurve: a list of precisions, recalls and numbers of items. With
/// `min_precision` RetrievalRecallAtFixedPrecision: the best recall and its number of items.
struct RetrievalCurveOptions {
  std::optional<int64_t> max_k{};
  bool adaptive_k = false;
  std::optional<float> min_precision{};
};
std::unique_ptr<const Metric> make_retrieval_curve(const RetrievalCurveOptions& curve,
                                                   const RetrievalOptions& options);

}  // namespace lockstep
