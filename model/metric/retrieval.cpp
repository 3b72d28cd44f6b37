#include "model/metric/retrieval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/expression/evaluation_error.hpp"

namespace lockstep {

namespace {

std::vector<MetricStateSpec> query_lists() {
  return {{"indexes", StateReduction::none, true},
          {"preds", StateReduction::none, true},
          {"target", StateReduction::none, true}};
}

void check_inputs(const MetricInputs& inputs) {
  check_equal_shapes(*inputs.predictions, *inputs.target);
  check_equal_shapes(*inputs.indexes, *inputs.target);
  if (is_floating(inputs.indexes->values.dtype()) ||
      !is_floating(inputs.predictions->values.dtype())) {
    throw OperationError("`indexes` are whole numbers and `preds` floats");
  }
}

// Without the items that are ignored.
void keep_queries(const MetricInputs& inputs, const std::optional<int64_t>& ignore_index,
                  bool is_graded, MetricState& state) {
  check_inputs(inputs);
  std::vector<double> indexes;
  std::vector<double> scores;
  std::vector<double> targets;
  for (int64_t i = 0; i < inputs.target->values.size(); ++i) {
    const double target = inputs.target->values.number(i);
    if (ignore_index && target == static_cast<double>(*ignore_index)) {
      continue;
    }
    if (!is_graded && (target < 0 || target > 1)) {
      throw OperationError(fmt::format("`target` holds {}, and relevance is 0 or 1", target));
    }
    indexes.push_back(static_cast<double>(inputs.indexes->values.integer(i)));
    scores.push_back(inputs.predictions->values.number(i));
    targets.push_back(target);
  }
  if (scores.empty()) {
    throw OperationError("`indexes`, `preds` and `target` are empty");
  }
  const std::vector<int64_t> shape = {static_cast<int64_t>(scores.size())};
  const bool is_float = is_floating(inputs.target->values.dtype());
  state[0].push_back({shape, Values::of(DType::int64, indexes)});
  state[1].push_back({shape, Values::of(DType::fp32, scores)});
  state[2].push_back({shape, Values::of(is_float ? DType::fp32 : DType::int64, targets)});
}

std::map<int64_t, Query> queries_of(const MetricState& state) {
  const Tensor indexes = joined_samples(state[0]);
  const Tensor scores = joined_samples(state[1]);
  const Tensor targets = joined_samples(state[2]);
  std::map<int64_t, Query> queries;
  for (int64_t i = 0; i < indexes.values.size(); ++i) {
    Query& query = queries[indexes.values.integer(i)];
    query.scores.push_back(static_cast<float>(scores.values.number(i)));
    query.relevance.push_back(static_cast<float>(targets.values.number(i)));
  }
  return queries;
}

bool has_relevant(const Query& query, bool negated) {
  double sum = 0;
  for (const float relevance : query.relevance) {
    sum += negated ? 1 - relevance : relevance;
  }
  return sum != 0;
}

// A score for a query without anything to find, or none.
std::optional<float> score_of_empty(RetrievalOptions::Empty action, int64_t query,
                                    const char* what) {
  switch (action) {
    case RetrievalOptions::Empty::negative: return 0.0F;
    case RetrievalOptions::Empty::positive: return 1.0F;
    case RetrievalOptions::Empty::skip: return std::nullopt;
    case RetrievalOptions::Empty::error: break;
  }
  throw OperationError(fmt::format("the query {} has no {} item", query, what),
                       "empty_target_action: skip leaves it out");
}

float over_queries(std::vector<float> values, RetrievalOptions::Over aggregation) {
  std::sort(values.begin(), values.end());
  switch (aggregation) {
    case RetrievalOptions::Over::median:
      return values[(values.size() - 1) / 2];  // torch.median: the lower one
    case RetrievalOptions::Over::min: return values.front();
    case RetrievalOptions::Over::max: return values.back();
    case RetrievalOptions::Over::mean: break;
  }
  double sum = 0;
  for (const float value : values) {
    sum += value;
  }
  return static_cast<float>(sum / static_cast<double>(values.size()));
}

class Retrieval final : public Metric {
 public:
  Retrieval(const QueryOptions& query, const RetrievalOptions& options)
      : Metric(query_lists()), query_(query), options_(options) {}

  MetricInputKind input_kind() const override { return MetricInputKind::queries; }

  void update(const MetricInputs& inputs, MetricState& state) const override {
    keep_queries(inputs, options_.ignore_index, query_.formula == QueryFormula::normalized_gain,
                 state);
  }

  Tensor compute(const MetricState& state) const override {
    const bool negated = query_.formula == QueryFormula::fall_out;
    std::vector<float> values;
    for (const auto& [index, query] : queries_of(state)) {
      const std::optional<float> value = has_relevant(query, negated)
                                             ? score_of(query, query_)
                                             : score_of_empty(options_.empty_target_action, index,
                                                              negated ? "irrelevant" : "relevant");
      if (value) {
        values.push_back(*value);
      }
    }
    return scalar(values.empty() ? 0 : over_queries(std::move(values), options_.aggregation));
  }

 private:
  QueryOptions query_;
  RetrievalOptions options_;
};

class RetrievalCurve final : public MetricOfSeveral {
 public:
  RetrievalCurve(const RetrievalCurveOptions& curve, const RetrievalOptions& options)
      : MetricOfSeveral(query_lists()), curve_(curve), options_(options) {}

  MetricInputKind input_kind() const override { return MetricInputKind::queries; }

  void update(const MetricInputs& inputs, MetricState& state) const override {
    keep_queries(inputs, options_.ignore_index, false, state);
  }

  Value value(const MetricState& state) const override {
    const std::map<int64_t, Query> queries = queries_of(state);
    int64_t max_k = curve_.max_k.value_or(0);
    for (const auto& [index, query] : queries) {
      max_k = curve_.max_k ? max_k : std::max(max_k, std::ssize(query.scores));
    }
    std::vector<QueryCurve> curves;
    for (const auto& [index, query] : queries) {
      if (has_relevant(query, false)) {
        curves.push_back(curve_of(query, max_k, curve_.adaptive_k));
      } else if (const auto score =
                     score_of_empty(options_.empty_target_action, index, "relevant")) {
        const std::vector<float> all(static_cast<size_t>(max_k), *score);
        curves.push_back({all, all, {}});
      }
    }
    return value_of(aggregated(curves, &QueryCurve::precision, max_k),
                    aggregated(curves, &QueryCurve::recall, max_k));
  }

 private:
  std::vector<float> aggregated(const std::vector<QueryCurve>& curves,
                                std::vector<float> QueryCurve::*which, int64_t max_k) const {
    std::vector<float> points;
    for (size_t k = 0; k < static_cast<size_t>(max_k); ++k) {
      std::vector<float> values;
      for (const QueryCurve& curve : curves) {
        values.push_back((curve.*which)[k]);
      }
      points.push_back(values.empty() ? 0 : over_queries(std::move(values), options_.aggregation));
    }
    return points;
  }

  Value value_of(const std::vector<float>& precision, const std::vector<float>& recall) const {
    const std::vector<int64_t> shape = {std::ssize(precision)};
    if (curve_.min_precision) {
      return best(precision, recall);
    }
    Tensor items = zeros(DType::int64, shape);
    for (int64_t i = 0; i < items.values.size(); ++i) {
      items.values.set_integer(i, i + 1);
    }
    return Value(List{Value(floats(shape, precision)), Value(floats(shape, recall)),
                      Value(std::move(items))});
  }

  // Of equal recalls the one with the most items; without any all items.
  Value best(const std::vector<float>& precision, const std::vector<float>& recall) const {
    float greatest = 0;
    auto items = static_cast<double>(precision.size());
    for (size_t i = 0; i < precision.size(); ++i) {
      if (precision[i] >= *curve_.min_precision && recall[i] >= greatest && recall[i] > 0) {
        greatest = recall[i];
        items = static_cast<double>(i + 1);
      }
    }
    return Value(List{Value(scalar(greatest)), Value(scalar(items, DType::int64))});
  }

  RetrievalCurveOptions curve_;
  RetrievalOptions options_;
};

}  // namespace

std::unique_ptr<const Metric> make_retrieval(const QueryOptions& query,
                                             const RetrievalOptions& options) {
  return std::make_unique<Retrieval>(query, options);
}

std::unique_ptr<const Metric> make_retrieval_curve(const RetrievalCurveOptions& curve,
                                                   const RetrievalOptions& options) {
  return std::make_unique<RetrievalCurve>(curve, options);
}

}  // namespace lockstep
