#include "model/metric/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/core/numbers.hpp"
#include "model/scenario/evaluation_error.hpp"

namespace lockstep {

std::vector<float> evenly_spaced(int64_t count) {
  const float step = 1.0F / static_cast<float>(count - 1);
  std::vector<float> points;
  for (int64_t i = 0; i < count; ++i) {
    points.push_back(i < count / 2 ? step * static_cast<float>(i)
                                   : 1.0F - step * static_cast<float>(count - 1 - i));
  }
  return points;
}

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Counts at falling thresholds.
struct Sweep {
  std::vector<int64_t> true_positives;
  std::vector<int64_t> false_positives;
  int64_t positives = 0;
  int64_t negatives = 0;
};

/// One sample as one class sees it.
struct Scored {
  float score = 0;
  bool positive = false;
};

// One point for each score that occurs, from the highest down.
Sweep sweep_of(std::vector<Scored> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Scored& a, const Scored& b) { return a.score > b.score; });
  Sweep sweep;
  for (size_t i = 0; i < samples.size(); ++i) {
    (samples[i].positive ? sweep.positives : sweep.negatives) += 1;
    if (i + 1 == samples.size() || samples[i + 1].score != samples[i].score) {
      sweep.true_positives.push_back(sweep.positives);
      sweep.false_positives.push_back(sweep.negatives);
    }
  }
  return sweep;
}

struct Curve {
  std::vector<float> x;
  std::vector<float> y;
};

float ratio(int64_t above, int64_t below) {
  return below == 0 ? 0.0F : static_cast<float>(above) / static_cast<float>(below);
}

float area(const Curve& curve) {
  double total = 0;
  for (size_t i = 1; i < curve.x.size(); ++i) {
    total += (static_cast<double>(curve.x[i]) - curve.x[i - 1]) *
             (static_cast<double>(curve.y[i]) + curve.y[i - 1]) / 2;
  }
  return static_cast<float>(total);
}

// Exact curves begin at (0, 0), binned ones at the point of the highest threshold.
Curve roc_of(const Sweep& sweep, bool begins_at_origin) {
  Curve curve;
  if (begins_at_origin) {
    curve.x.push_back(0);
    curve.y.push_back(0);
  }
  for (size_t i = 0; i < sweep.true_positives.size(); ++i) {
    curve.x.push_back(ratio(sweep.false_positives[i], sweep.negatives));
    curve.y.push_back(ratio(sweep.true_positives[i], sweep.positives));
  }
  return curve;
}

// The part up to max_fpr, rescaled to [0.5, 1] (McClish 1989).
float partial_area(const Curve& curve, float max_fpr) {
  const auto sum = [](const std::vector<float>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0);
  };
  if (max_fpr == 1 || sum(curve.x) == 0 || sum(curve.y) == 0) {
    return area(curve);
  }
  const auto stop = static_cast<size_t>(std::upper_bound(curve.x.begin(), curve.x.end(), max_fpr) -
                                        curve.x.begin());
  if (stop == 0 || stop == curve.x.size()) {
    throw OperationError(fmt::format("no part of the curve reaches max_fpr {}", max_fpr),
                         "use more thresholds");
  }
  const float weight = (max_fpr - curve.x[stop - 1]) / (curve.x[stop] - curve.x[stop - 1]);
  Curve part{{curve.x.begin(), curve.x.begin() + static_cast<ptrdiff_t>(stop)},
             {curve.y.begin(), curve.y.begin() + static_cast<ptrdiff_t>(stop)}};
  part.x.push_back(max_fpr);
  part.y.push_back(curve.y[stop - 1] + weight * (curve.y[stop] - curve.y[stop - 1]));
  const float least = 0.5F * max_fpr * max_fpr;
  return 0.5F * (1 + (area(part) - least) / (max_fpr - least));
}

// Sum over falling thresholds of (recall step) * precision; what is undefined counts as 0.
float average_precision(const Sweep& sweep, bool exact) {
  const bool none = sweep.positives == 0;
  double total = 0;
  float earlier = 0;
  for (size_t i = 0; i < sweep.true_positives.size(); ++i) {
    const int64_t predicted = sweep.true_positives[i] + sweep.false_positives[i];
    const float precision = ratio(sweep.true_positives[i], predicted);
    const float recall =
        none ? (exact ? 1.0F : 0.0F) : ratio(sweep.true_positives[i], sweep.positives);
    total += (static_cast<double>(recall) - earlier) * precision;
    earlier = recall;
  }
  return static_cast<float>(total);
}

class CurveMetric final : public Metric {
 public:
  CurveMetric(const Classification& classification, const CurveOptions& options)
      : Metric(states_of(classification, options)), classes_(classification), options_(options) {}

  void update(const MetricInputs& inputs, MetricState& state) const override;
  Tensor compute(const MetricState& state) const override;

 private:
  static std::vector<MetricStateSpec> states_of(const Classification& classification,
                                                const CurveOptions& options);
  bool is_binary() const { return classes_.task == ClassificationTask::binary; }
  int64_t classes() const { return is_binary() ? 1 : classes_.classes; }
  void check(const Tensor& predictions, const Tensor& target) const;
  void leave_out_ignored(std::vector<int64_t>& targets, std::vector<float>& scores) const;
  void count(const std::vector<float>& scores, const std::vector<int64_t>& targets,
             Values& counts) const;
  Sweep sweep(const MetricState& state, int64_t c) const;
  float value(const Sweep& sweep) const;
  bool is_undefined(const Sweep& sweep, const MetricState& state) const;
  Tensor averaged(const std::vector<float>& values, const std::vector<int64_t>& support) const;

  Classification classes_;
  CurveOptions options_;
};

std::vector<MetricStateSpec> CurveMetric::states_of(const Classification& classification,
                                                    const CurveOptions& options) {
  if (!options.thresholds) {
    return {{"preds", StateReduction::cat, true}, {"target", StateReduction::cat, true}};
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(options.thresholds->size())};
  if (classification.task != ClassificationTask::binary) {
    shape.push_back(classification.classes);
  }
  shape.insert(shape.end(), {2, 2});
  return {{"confmat", StateReduction::sum, false, zeros(DType::int64, shape)}};
}

void CurveMetric::check(const Tensor& predictions, const Tensor& target) const {
  if (!is_floating(predictions.values.dtype())) {
    throw OperationError("`preds` holds labels, and a curve is made of scores", "give floats");
  }
  if (is_floating(target.values.dtype())) {
    throw OperationError("`target` holds floats, and labels are due", "give whole numbers");
  }
  if (is_binary()) {
    check_equal_shapes(predictions, target);
    return check_binary_target(target, classes_.ignore_index);
  }
  if (predictions.shape.size() != 2 || target.shape.size() != 1 ||
      predictions.shape[0] != target.shape[0] || predictions.shape[1] != classes_.classes) {
    throw OperationError(
        fmt::format(
            "`preds` has the shape {} and `target` {}: they are [samples, {}] and [samples]",
            text_of_shape(predictions.shape), text_of_shape(target.shape), classes_.classes),
        "give as many scores per sample as `num_classes` says");
  }
  check_class_target(target, classes_.classes, classes_.ignore_index);
}

void CurveMetric::leave_out_ignored(std::vector<int64_t>& targets,
                                    std::vector<float>& scores) const {
  const auto width = static_cast<size_t>(classes());
  size_t kept = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] != *classes_.ignore_index) {
      targets[kept] = targets[i];
      std::copy_n(scores.begin() + static_cast<ptrdiff_t>(i * width), width,
                  scores.begin() + static_cast<ptrdiff_t>(kept * width));
      ++kept;
    }
  }
  targets.resize(kept);
  scores.resize(kept * width);
}

void CurveMetric::update(const MetricInputs& inputs, MetricState& state) const {
  check(*inputs.predictions, *inputs.target);
  const Values& labels_given = inputs.target->values;
  std::vector<int64_t> targets = numbers_of<int64_t>(labels_given);
  std::vector<float> scores = numbers_of<float>(inputs.predictions->values);
  if (classes_.ignore_index) {
    leave_out_ignored(targets, scores);
  }
  const std::vector<float> normal = is_binary() ? probabilities(std::move(scores))
                                                : row_probabilities(std::move(scores), classes());
  if (options_.thresholds) {
    return count(normal, targets, state.front().front().values);
  }
  const auto samples = static_cast<int64_t>(targets.size());
  state[0].push_back(
      floats(is_binary() ? std::vector{samples} : std::vector{samples, classes()}, normal));
  Tensor labels = zeros(labels_given.dtype(), {samples});
  for (size_t i = 0; i < targets.size(); ++i) {
    labels.values.set_integer(static_cast<int64_t>(i), targets[i]);
  }
  state[1].push_back(std::move(labels));
}

// confmat[threshold, class, is positive, is predicted]. Each sample is counted once, by how many of
// the sorted thresholds it reaches; sums over these bins give the counts at each threshold.
void CurveMetric::count(const std::vector<float>& scores, const std::vector<int64_t>& targets,
                        Values& counts) const {
  const std::vector<float>& thresholds = *options_.thresholds;
  std::vector<size_t> order(thresholds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return thresholds[a] < thresholds[b]; });
  std::vector<float> sorted;
  for (const size_t index : order) {
    sorted.push_back(thresholds[index]);
  }
  const auto width = static_cast<size_t>(classes());
  const size_t bins = sorted.size() + 1;
  std::vector<int64_t> reached(width * 2 * bins);
  for (size_t i = 0; i < scores.size(); ++i) {
    const size_t c = i % width;
    const int64_t target = targets[i / width];
    const bool positive = is_binary() ? target == 1 : target == static_cast<int64_t>(c);
    const auto bin = static_cast<size_t>(std::upper_bound(sorted.begin(), sorted.end(), scores[i]) -
                                         sorted.begin());
    ++reached[(c * 2 + (positive ? 1 : 0)) * bins + bin];
  }
  for (size_t row = 0; row < width * 2; ++row) {
    int64_t below = 0;
    const int64_t all =
        std::accumulate(reached.begin() + static_cast<ptrdiff_t>(row * bins),
                        reached.begin() + static_cast<ptrdiff_t>((row + 1) * bins), int64_t{0});
    for (size_t t = 0; t < sorted.size(); ++t) {
      below += reached[row * bins + t];
      const auto at = static_cast<int64_t>((order[t] * width * 2 + row) * 2);
      counts.set_integer(at, counts.integer(at) + below);
      counts.set_integer(at + 1, counts.integer(at + 1) + all - below);
    }
  }
}

Sweep CurveMetric::sweep(const MetricState& state, int64_t c) const {
  if (!options_.thresholds) {
    const std::vector<float> scores = numbers_of<float>(joined(state[0]).values);
    const std::vector<int64_t> targets = numbers_of<int64_t>(joined(state[1]).values);
    std::vector<Scored> samples;
    samples.reserve(targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      samples.push_back({scores[i * static_cast<size_t>(classes()) + static_cast<size_t>(c)],
                         is_binary() ? targets[i] == 1 : targets[i] == c});
    }
    return sweep_of(std::move(samples));
  }
  const Values& counts = state.front().front().values;
  Sweep sweep;
  for (auto t = static_cast<int64_t>(options_.thresholds->size()) - 1; t >= 0; --t) {
    const int64_t at = (t * classes() + c) * 4;
    sweep.true_positives.push_back(counts.integer(at + 3));
    sweep.false_positives.push_back(counts.integer(at + 1));
    sweep.positives = counts.integer(at + 2) + counts.integer(at + 3);
    sweep.negatives = counts.integer(at) + counts.integer(at + 1);
  }
  return sweep;
}

float CurveMetric::value(const Sweep& sweep) const {
  const bool exact = !options_.thresholds;
  if (options_.formula == CurveFormula::average_precision) {
    return average_precision(sweep, exact);
  }
  const Curve curve = roc_of(sweep, exact);
  return options_.max_fpr ? partial_area(curve, *options_.max_fpr) : area(curve);
}

// precision_recall_curve.py: without thresholds the recall of a class that has no positives is 0 /
// 0, unless all labels are 0; then it is set to one, whatever the class.
bool CurveMetric::is_undefined(const Sweep& sweep, const MetricState& state) const {
  if (is_binary() || options_.thresholds || sweep.positives > 0 ||
      options_.formula != CurveFormula::average_precision) {
    return false;
  }
  return std::any_of(state[1].begin(), state[1].end(), [](const Tensor& labels) {
    for (int64_t i = 0; i < labels.values.size(); ++i) {
      if (labels.values.integer(i) != 0) {
        return true;
      }
    }
    return false;
  });
}

Tensor CurveMetric::averaged(const std::vector<float>& values,
                             const std::vector<int64_t>& support) const {
  if (classes_.average == ClassAverage::none) {
    return floats({static_cast<int64_t>(values.size())}, values);
  }
  const bool weighted = classes_.average == ClassAverage::weighted;
  double total = 0;
  double weights = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) {
      const double weight = weighted ? static_cast<double>(support[i]) : 1.0;
      total += weight * values[i];
      weights += weight;
    }
  }
  return scalar(weights == 0 ? (weighted ? 0 : not_a_number) : total / weights);
}

Tensor CurveMetric::compute(const MetricState& state) const {
  if (!options_.thresholds && joined(state[1]).values.empty()) {
    throw OperationError("there are no samples to concatenate", "call update before compute");
  }
  std::vector<float> values;
  std::vector<int64_t> support;
  for (int64_t c = 0; c < classes(); ++c) {
    const Sweep swept = sweep(state, c);
    values.push_back(is_undefined(swept, state) ? static_cast<float>(not_a_number) : value(swept));
    support.push_back(swept.positives);
  }
  return is_binary() ? scalar(values.front()) : averaged(values, support);
}

}  // namespace

std::unique_ptr<const Metric> make_curve_metric(const Classification& classification,
                                                const CurveOptions& options) {
  return std::make_unique<CurveMetric>(classification, options);
}

}  // namespace lockstep
