#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "model/metric/curves.hpp"
#include "model/metric/retrieval.hpp"

namespace lockstep {

namespace {

std::vector<size_t> best_first(const std::vector<float>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

double sum_of(const std::vector<float>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

// Relevance of the best items in their order; `positive_scores`: of a score of 0 or less none.
std::vector<float> best_relevance(const Query& query, size_t top_k, bool positive_scores) {
  std::vector<float> relevance;
  for (const size_t item : best_first(query.scores)) {
    if (relevance.size() == top_k) {
      break;
    }
    const bool counts = !positive_scores || query.scores[item] > 0;
    relevance.push_back(counts ? query.relevance[item] : 0);
  }
  return relevance;
}

float average_precision(const std::vector<float>& relevance) {
  double sum = 0;
  double found = 0;
  for (size_t position = 0; position < relevance.size(); ++position) {
    if (relevance[position] > 0) {
      ++found;
      sum += static_cast<float>(found / static_cast<double>(position + 1));
    }
  }
  return static_cast<float>(found == 0 ? 0 : sum / found);
}

float reciprocal_rank(const std::vector<float>& relevance) {
  for (size_t position = 0; position < relevance.size(); ++position) {
    if (relevance[position] != 0) {
      return 1.0F / static_cast<float>(position + 1);
    }
  }
  return 0;
}

float discount(size_t position, size_t top_k) {
  return position < top_k ? 1 / std::log2(static_cast<float>(position) + 2) : 0;
}

// Items of equal scores share the mean of their relevance over their places.
double gain_of_ties(const Query& query, size_t top_k) {
  std::map<float, std::pair<double, size_t>, std::greater<>> groups;
  for (size_t i = 0; i < query.scores.size(); ++i) {
    auto& [relevance, count] = groups[query.scores[i]];
    relevance += query.relevance[i];
    ++count;
  }
  double gain = 0;
  size_t position = 0;
  for (const auto& [score, group] : groups) {
    double discounts = 0;
    for (size_t i = 0; i < group.second; ++i) {
      discounts += discount(position++, top_k);
    }
    gain += group.first / static_cast<double>(group.second) * discounts;
  }
  return gain;
}

float normalized_gain(const Query& query, size_t top_k) {
  double ideal = 0;
  std::vector<float> sorted = query.relevance;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (size_t position = 0; position < sorted.size(); ++position) {
    ideal += sorted[position] * discount(position, top_k);
  }
  return ideal == 0 ? 0 : static_cast<float>(gain_of_ties(query, top_k) / ideal);
}

float fall_out(const Query& query, size_t top_k) {
  Query irrelevant = query;
  for (float& relevance : irrelevant.relevance) {
    relevance = 1 - relevance;
  }
  const double all = sum_of(irrelevant.relevance);
  return static_cast<float>(all == 0 ? 0 : sum_of(best_relevance(irrelevant, top_k, false)) / all);
}

float r_precision(const Query& query) {
  const double all = sum_of(query.relevance);
  const double found = sum_of(best_relevance(query, static_cast<size_t>(all), false));
  return static_cast<float>(all == 0 ? 0 : found / all);
}

float area_under_roc(const Query& query, size_t top_k, const std::optional<float>& max_fpr) {
  std::vector<size_t> items = best_first(query.scores);
  items.resize(std::min(items.size(), top_k));
  const auto count = static_cast<int64_t>(items.size());
  Tensor scores = zeros(DType::fp32, {count});
  Tensor labels = zeros(DType::int64, {count});
  int64_t relevant = 0;
  for (int64_t i = 0; i < count; ++i) {
    const size_t item = items[static_cast<size_t>(i)];
    scores.values.set(i, query.scores[item]);
    labels.values.set(i, query.relevance[item]);
    relevant += labels.values.integer(i);
  }
  if (relevant == 0 || relevant == count) {
    return 0;
  }
  CurveOptions options;
  options.max_fpr = max_fpr;
  const std::unique_ptr<const Metric> area = make_curve_metric(Classification(), options);
  MetricState state = area->initial_state();
  area->update({&scores, &labels}, state);
  return static_cast<float>(area->compute(state).values.number(0));
}

}  // namespace

float score_of(const Query& query, const QueryOptions& options) {
  const size_t items = query.scores.size();
  const size_t asked = options.top_k ? static_cast<size_t>(*options.top_k) : items;
  const size_t top_k = options.adaptive_k ? std::min(asked, items) : asked;
  const double relevant = sum_of(query.relevance);
  switch (options.formula) {
    case QueryFormula::average_precision:
      return average_precision(best_relevance(query, top_k, true));
    case QueryFormula::reciprocal_rank: return reciprocal_rank(best_relevance(query, top_k, true));
    case QueryFormula::normalized_gain: return normalized_gain(query, top_k);
    case QueryFormula::precision:
      return static_cast<float>(sum_of(best_relevance(query, top_k, true)) /
                                static_cast<double>(top_k));
    case QueryFormula::recall:
      return static_cast<float>(
          relevant == 0 ? 0 : sum_of(best_relevance(query, top_k, true)) / relevant);
    case QueryFormula::hit_rate: return sum_of(best_relevance(query, top_k, false)) > 0 ? 1 : 0;
    case QueryFormula::fall_out: return fall_out(query, top_k);
    case QueryFormula::r_precision: return r_precision(query);
    case QueryFormula::area_under_roc: return area_under_roc(query, top_k, options.max_fpr);
  }
  return 0;
}

QueryCurve curve_of(const Query& query, int64_t max_k, bool adaptive_k) {
  const auto items = static_cast<int64_t>(query.scores.size());
  const double relevant = sum_of(query.relevance);
  const std::vector<float> best = best_relevance(query, static_cast<size_t>(max_k), false);
  QueryCurve curve;
  double found = 0;
  for (int64_t k = 1; k <= max_k; ++k) {
    found += k <= std::ssize(best) ? best[static_cast<size_t>(k - 1)] : 0;
    curve.top_k.push_back(adaptive_k ? std::min(k, items) : k);
    curve.precision.push_back(static_cast<float>(found / static_cast<double>(curve.top_k.back())));
    curve.recall.push_back(static_cast<float>(relevant == 0 ? 0 : found / relevant));
  }
  return curve;
}

}  // namespace lockstep
