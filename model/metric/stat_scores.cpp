#include "model/metric/stat_scores.hpp"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

using Counts = std::vector<int64_t>;

std::vector<MetricStateSpec> count_states(const Classification& classification) {
  const bool is_micro = classification.task == ClassificationTask::multiclass &&
                        classification.average == ClassAverage::micro;
  const int64_t size = is_micro ? 1 : classification.classes;
  std::vector<MetricStateSpec> states;
  for (const char* name : {"tp", "fp", "tn", "fn"}) {
    states.push_back({name, StateReduction::sum, false, zeros(DType::int64, {size})});
  }
  return states;
}

float ratio(float above, float below, float otherwise = 0) {
  return below != 0 ? above / below : otherwise;
}

Counts counts_of(const StateValue& state) {
  Counts counts;
  for (int64_t i = 0; i < state.front().values.size(); ++i) {
    counts.push_back(state.front().values.integer(i));
  }
  return counts;
}

int64_t sum_of(const Counts& counts) {
  int64_t total = 0;
  for (const int64_t count : counts) {
    total += count;
  }
  return total;
}

class CountMetric final : public Metric {
 public:
  CountMetric(const Classification& classification, const CountOptions& options)
      : Metric(count_states(classification)), classes_(classification), options_(options) {}

  void update(const MetricInputs& inputs, MetricState& state) const override;
  Tensor compute(const MetricState& state) const override;

 private:
  struct All {
    Counts true_positives, false_positives, true_negatives, false_negatives;
  };
  float score(int64_t tp, int64_t fp, int64_t tn, int64_t fn) const;
  Tensor averaged(const All& all) const;
  Tensor listed(const All& all) const;

  Classification classes_;
  CountOptions options_;
};

void CountMetric::update(const MetricInputs& inputs, MetricState& state) const {
  const std::vector<LabelPair> pairs = label_pairs(classes_, *inputs.predictions, *inputs.target);
  const auto add = [&state](size_t which, int64_t entry, int64_t count) {
    Values& values = state[which].front().values;
    values.set_integer(entry, values.integer(entry) + count);
  };
  constexpr size_t tp = 0, fp = 1, tn = 2, fn = 3;
  if (classes_.task != ClassificationTask::multiclass) {
    std::array<Counts, 4> counts;
    counts.fill(Counts(static_cast<size_t>(classes_.classes)));
    for (const LabelPair& pair : pairs) {
      const bool right = pair.predicted == pair.target;
      ++counts[pair.target == 1 ? (right ? tp : fn) : (right ? tn : fp)]
              [static_cast<size_t>(pair.label)];
    }
    for (size_t which = 0; which < counts.size(); ++which) {
      for (int64_t label = 0; label < classes_.classes; ++label) {
        add(which, label, counts[which][static_cast<size_t>(label)]);
      }
    }
    return;
  }
  const bool is_micro = classes_.average == ClassAverage::micro;
  const auto samples = static_cast<int64_t>(pairs.size());
  Counts touched(static_cast<size_t>(classes_.classes));
  int64_t right = 0;
  for (const LabelPair& pair : pairs) {
    const bool hit = pair.predicted == pair.target;
    right += hit ? 1 : 0;
    if (!is_micro) {
      add(hit ? tp : fp, pair.predicted, 1);
      add(fn, pair.target, hit ? 0 : 1);
      ++touched[static_cast<size_t>(pair.predicted)];
      touched[static_cast<size_t>(pair.target)] += hit ? 0 : 1;
    }
  }
  if (is_micro) {
    const int64_t wrong = samples - right;
    add(tp, 0, right);
    add(fp, 0, wrong);
    add(fn, 0, wrong);
    add(tn, 0, classes_.classes * samples - (wrong + wrong + right));
    return;
  }
  for (int64_t c = 0; c < classes_.classes; ++c) {
    add(tn, c, samples - touched[static_cast<size_t>(c)]);
  }
}

float CountMetric::score(int64_t tp, int64_t fp, int64_t tn, int64_t fn) const {
  const auto number = [](int64_t count) { return static_cast<float>(count); };
  const float beta_squared = options_.beta * options_.beta;
  const float otherwise = options_.zero_division;
  switch (options_.formula) {
    case CountFormula::accuracy:
      return classes_.task == ClassificationTask::multiclass
                 ? ratio(number(tp), number(tp + fn))
                 : ratio(number(tp + tn), number(tp + tn + fp + fn));
    case CountFormula::precision: return ratio(number(tp), number(tp + fp), otherwise);
    case CountFormula::recall: return ratio(number(tp), number(tp + fn), otherwise);
    case CountFormula::specificity: return ratio(number(tn), number(tn + fp));
    // The classes read `zero_division` and make nothing of it.
    case CountFormula::negative_predictive_value: return ratio(number(tn), number(tn + fn));
    case CountFormula::hamming_distance:
      return 1 - (classes_.task == ClassificationTask::multiclass
                      ? ratio(number(tp), number(tp + fn))
                      : ratio(number(tp + tn), number(tp + tn + fp + fn)));
    case CountFormula::f_beta:
      return ratio((1 + beta_squared) * number(tp),
                   (1 + beta_squared) * number(tp) + beta_squared * number(fn) + number(fp),
                   otherwise);
    case CountFormula::counts: break;
  }
  return 0;
}

// [.., 5] of tp, fp, tn, fn and support.
Tensor CountMetric::listed(const All& all) const {
  const size_t entries = all.true_positives.size();
  const bool keeps_classes =
      classes_.task != ClassificationTask::binary && classes_.average == ClassAverage::none;
  const bool is_sum = classes_.task == ClassificationTask::binary || keeps_classes ||
                      classes_.average == ClassAverage::micro;
  const auto rows = static_cast<int64_t>(keeps_classes ? entries : 1);
  Tensor result = zeros(is_sum ? DType::int64 : DType::fp32, {rows, 5});
  std::vector<double> means(5);
  double support = 0;
  for (size_t i = 0; i < entries; ++i) {
    support += static_cast<double>(all.true_positives[i] + all.false_negatives[i]);
  }
  for (size_t i = 0; i < entries; ++i) {
    const std::array<int64_t, 5> row = {all.true_positives[i], all.false_positives[i],
                                        all.true_negatives[i], all.false_negatives[i],
                                        all.true_positives[i] + all.false_negatives[i]};
    const auto first = static_cast<int64_t>(keeps_classes ? 5 * i : 0);
    const double weight = classes_.average == ClassAverage::weighted
                              ? static_cast<double>(row[4]) / support
                              : 1.0 / static_cast<double>(entries);
    for (size_t k = 0; k < row.size(); ++k) {
      const int64_t at = first + static_cast<int64_t>(k);
      means[k] += weight * static_cast<double>(row[k]);
      if (is_sum) {
        result.values.set_integer(at, result.values.integer(at) + row[k]);
      } else {
        result.values.set(at, means[k]);
      }
    }
  }
  if (!keeps_classes) {
    result.shape = {5};
  }
  return result;
}

Tensor CountMetric::averaged(const All& all) const {
  const bool multilabel = classes_.task == ClassificationTask::multilabel;
  std::vector<float> scores;
  std::vector<float> weights;
  float total = 0;
  for (size_t i = 0; i < all.true_positives.size(); ++i) {
    const int64_t tp = all.true_positives[i];
    const int64_t fp = all.false_positives[i];
    const int64_t fn = all.false_negatives[i];
    scores.push_back(score(tp, fp, all.true_negatives[i], fn));
    // A class that neither occurs nor is predicted does not count.
    const bool absent = !multilabel && tp + fp + fn == 0;
    weights.push_back(classes_.average == ClassAverage::weighted ? static_cast<float>(tp + fn)
                                                                 : (absent ? 0.0F : 1.0F));
    total += weights.back();
  }
  if (classes_.average == ClassAverage::none) {
    return floats({static_cast<int64_t>(scores.size())}, scores);
  }
  float result = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    result += ratio(weights[i] * scores[i], total);
  }
  return scalar(result);
}

Tensor CountMetric::compute(const MetricState& state) const {
  const All all{counts_of(state[0]), counts_of(state[1]), counts_of(state[2]), counts_of(state[3])};
  if (options_.formula == CountFormula::counts) {
    return listed(all);
  }
  if (classes_.task == ClassificationTask::binary || classes_.average == ClassAverage::micro) {
    return scalar(score(sum_of(all.true_positives), sum_of(all.false_positives),
                        sum_of(all.true_negatives), sum_of(all.false_negatives)));
  }
  return averaged(all);
}

}  // namespace

std::unique_ptr<const Metric> make_count_metric(const Classification& classification,
                                                const CountOptions& options) {
  return std::make_unique<CountMetric>(classification, options);
}

}  // namespace lockstep
