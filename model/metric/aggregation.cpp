#include "model/metric/aggregation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "model/core/numbers.hpp"
#include "model/scenario/evaluation_error.hpp"

namespace lockstep {

namespace {

std::vector<MetricStateSpec> aggregation_states(Aggregation aggregation) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (aggregation) {
    case Aggregation::mean:
      return {{"mean_value", StateReduction::sum, false, scalar(0)},
              {"weight", StateReduction::sum, false, scalar(0)}};
    case Aggregation::sum: return {{"sum_value", StateReduction::sum, false, scalar(0)}};
    case Aggregation::max: return {{"max_value", StateReduction::max, false, scalar(-infinity)}};
    case Aggregation::min: return {{"min_value", StateReduction::min, false, scalar(infinity)}};
    case Aggregation::cat: return {{"value", StateReduction::cat, true}};
  }
  return {};
}

class Aggregator final : public Metric {
 public:
  Aggregator(Aggregation aggregation, const NanStrategy& nan)
      : Metric(aggregation_states(aggregation)), aggregation_(aggregation), nan_(nan) {}

  MetricInputKind input_kind() const override { return MetricInputKind::value; }
  bool full_state_update() const override {
    return aggregation_ == Aggregation::max || aggregation_ == Aggregation::min;
  }

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Kept kept = kept_of(inputs);
    if (kept.values.empty()) {
      return;
    }
    if (aggregation_ == Aggregation::cat) {
      const auto size = static_cast<int64_t>(kept.values.size());
      state.front().push_back(
          floats(kept.all ? inputs.predictions->shape : std::vector{size}, kept.values));
      return;
    }
    Tensor& first = state.front().front();
    double weighted = 0;
    double weights = 0;
    for (size_t i = 0; i < kept.values.size(); ++i) {
      const double factor = aggregation_ == Aggregation::mean ? kept.weights[i] : 1.0F;
      weighted += static_cast<float>(kept.values[i] * factor);
      weights += kept.weights[i];
    }
    switch (aggregation_) {
      case Aggregation::mean: add_to(state[1].front(), scalar(weights)); [[fallthrough]];
      case Aggregation::sum: add_to(first, scalar(weighted)); break;
      case Aggregation::max:
        first.values.set(
            0, std::max(first.values.number(0),
                        double{*std::max_element(kept.values.begin(), kept.values.end())}));
        break;
      case Aggregation::min:
        first.values.set(
            0, std::min(first.values.number(0),
                        double{*std::min_element(kept.values.begin(), kept.values.end())}));
        break;
      case Aggregation::cat: break;
    }
  }

  Tensor compute(const MetricState& state) const override {
    if (aggregation_ == Aggregation::cat) {
      return joined(state.front());
    }
    const float first = static_cast<float>(state[0].front().values.number(0));
    return aggregation_ == Aggregation::mean
               ? scalar(first / static_cast<float>(state[1].front().values.number(0)))
               : state[0].front();
  }

 private:
  struct Kept {
    std::vector<float> values;
    std::vector<float> weights;
    bool all = true;
  };

  // Without the nans, or with what replaces them.
  Kept kept_of(const MetricInputs& inputs) const {
    const std::vector<float> values = numbers_of<float>(inputs.predictions->values);
    const std::vector<float> weights =
        inputs.weight == nullptr ? std::vector<float>{1} : numbers_of<float>(inputs.weight->values);
    if (weights.size() != 1 && weights.size() != values.size()) {
      throw OperationError(fmt::format("{} weights for {} values", weights.size(), values.size()));
    }
    Kept kept;
    kept.values.reserve(values.size());
    kept.weights.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      float value = values[i];
      float weight = weights[weights.size() == 1 ? 0 : i];
      if (std::isnan(value) || std::isnan(weight)) {
        if (nan_.kind == NanStrategy::Kind::error) {
          throw OperationError("the value holds nan", "nan_strategy: ignore drops them");
        }
        if (nan_.kind == NanStrategy::Kind::drop) {
          kept.all = false;
          continue;
        }
        if (nan_.kind == NanStrategy::Kind::replace) {
          value = nan_.replacement;
          weight = 1;
        }
      }
      kept.values.push_back(value);
      kept.weights.push_back(weight);
    }
    return kept;
  }

  Aggregation aggregation_;
  NanStrategy nan_;
};

class RetrievalMap final : public Metric {
 public:
  explicit RetrievalMap(const RetrievalOptions& options)
      : Metric({{"indexes", StateReduction::none, true},
                {"preds", StateReduction::none, true},
                {"target", StateReduction::none, true}}),
        options_(options) {}

  MetricInputKind input_kind() const override { return MetricInputKind::queries; }

  void update(const MetricInputs& inputs, MetricState& state) const override;
  Tensor compute(const MetricState& state) const override;

 private:
  float over_queries(std::vector<float> values) const;

  RetrievalOptions options_;
};

void RetrievalMap::update(const MetricInputs& inputs, MetricState& state) const {
  check_equal_shapes(*inputs.predictions, *inputs.target);
  check_equal_shapes(*inputs.indexes, *inputs.target);
  if (is_floating(inputs.indexes->values.dtype()) ||
      !is_floating(inputs.predictions->values.dtype())) {
    throw OperationError("`indexes` are whole numbers and `preds` floats");
  }
  std::vector<double> indexes;
  std::vector<double> scores;
  std::vector<double> targets;
  for (int64_t i = 0; i < inputs.target->values.size(); ++i) {
    const double target = inputs.target->values.number(i);
    if (options_.ignore_index && target == static_cast<double>(*options_.ignore_index)) {
      continue;
    }
    if (target < 0 || target > 1) {
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

Tensor RetrievalMap::compute(const MetricState& state) const {
  using Empty = RetrievalOptions::Empty;
  const Tensor indexes = joined(state[0]);
  const Tensor scores = joined(state[1]);
  const Tensor targets = joined(state[2]);
  if (indexes.values.empty()) {
    throw OperationError("there are no samples to concatenate", "call update before compute");
  }
  std::map<int64_t, std::vector<int64_t>> queries;
  for (int64_t i = 0; i < indexes.values.size(); ++i) {
    queries[indexes.values.integer(i)].push_back(i);
  }
  std::vector<float> values;
  for (const auto& [query, items] : queries) {
    const std::vector<int64_t> shape = {static_cast<int64_t>(items.size())};
    Tensor own_scores = zeros(DType::fp32, shape);
    Tensor own_targets = zeros(DType::fp32, shape);
    double relevant = 0;
    for (size_t k = 0; k < items.size(); ++k) {
      own_scores.values.set(static_cast<int64_t>(k), scores.values.number(items[k]));
      own_targets.values.set(static_cast<int64_t>(k), targets.values.number(items[k]));
      relevant += targets.values.number(items[k]);
    }
    if (relevant != 0) {
      values.push_back(query_average_precision(own_scores, own_targets, options_.top_k));
    } else if (options_.empty_target_action == Empty::error) {
      throw OperationError(fmt::format("the query {} has no relevant item", query),
                           "empty_target_action: skip leaves it out");
    } else if (options_.empty_target_action != Empty::skip) {
      values.push_back(options_.empty_target_action == Empty::positive ? 1.0F : 0.0F);
    }
  }
  return scalar(values.empty() ? 0 : over_queries(std::move(values)));
}

float RetrievalMap::over_queries(std::vector<float> values) const {
  using Over = RetrievalOptions::Over;
  std::sort(values.begin(), values.end());
  switch (options_.aggregation) {
    case Over::median: return values[(values.size() - 1) / 2];  // torch.median: the lower one
    case Over::min: return values.front();
    case Over::max: return values.back();
    case Over::mean: break;
  }
  double sum = 0;
  for (const float value : values) {
    sum += value;
  }
  return static_cast<float>(sum / static_cast<double>(values.size()));
}

}  // namespace

float query_average_precision(const Tensor& scores, const Tensor& relevance,
                              std::optional<int64_t> top_k) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < scores.values.size(); ++i) {
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores.values.number(a) > scores.values.number(b);
  });
  if (top_k && *top_k < static_cast<int64_t>(order.size())) {
    order.resize(static_cast<size_t>(*top_k));
  }
  double sum = 0;
  double found = 0;
  for (size_t position = 0; position < order.size(); ++position) {
    if (relevance.values.number(order[position]) > 0 && scores.values.number(order[position]) > 0) {
      ++found;
      sum += static_cast<float>(found / static_cast<double>(position + 1));
    }
  }
  return static_cast<float>(found == 0 ? 0 : sum / found);
}

std::unique_ptr<const Metric> make_aggregation(Aggregation aggregation, const NanStrategy& nan) {
  return std::make_unique<Aggregator>(aggregation, nan);
}

std::unique_ptr<const Metric> make_retrieval_map(const RetrievalOptions& options) {
  return std::make_unique<RetrievalMap>(options);
}

}  // namespace lockstep
