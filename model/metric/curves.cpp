#include "model/metric/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/expression/evaluation_error.hpp"
#include "model/metric/curve_points.hpp"

namespace lockstep {

namespace {

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
             {curve.y.begin(), curve.y.begin() + static_cast<ptrdiff_t>(stop)},
             {}};
  part.x.push_back(max_fpr);
  part.y.push_back(curve.y[stop - 1] + weight * (curve.y[stop] - curve.y[stop - 1]));
  const float least = 0.5F * max_fpr * max_fpr;
  return 0.5F * (1 + (area(part) - least) / (max_fpr - least));
}

// Sum over falling thresholds of (recall step) * precision. What is undefined counts as 0, but of
// an exact curve of one class among several.
float average_precision(const Sweep& sweep, bool is_exact) {
  const Curve curve = precision_recall_of(sweep, is_exact);
  const auto defined = [is_exact](float number) {
    return std::isnan(number) && !is_exact ? 0 : number;
  };
  double total = 0;
  for (size_t i = 0; i + 1 < curve.y.size(); ++i) {
    total +=
        (static_cast<double>(defined(curve.y[i])) - defined(curve.y[i + 1])) * defined(curve.x[i]);
  }
  return static_cast<float>(total);
}

// Where false positives and false negatives are equally frequent, as near as a point comes.
float equal_error_rate(const Curve& roc) {
  size_t best = 0;
  const auto apart = [&roc](size_t i) { return std::abs(roc.x[i] - (1 - roc.y[i])); };
  for (size_t i = 1; i < roc.x.size(); ++i) {
    best = apart(i) < apart(best) ? i : best;
  }
  return (roc.x[best] + (1 - roc.y[best])) / 2;
}

// Between the points around x, which torch looks for from the left; of points of equal x the last
// counts. (There torch sorts the points once more, and leaves the order of equal ones to chance.)
float between_points(const Curve& curve, float x) {
  const auto above = std::lower_bound(curve.x.begin(), curve.x.end(), x) - curve.x.begin();
  const auto last = static_cast<ptrdiff_t>(curve.x.size()) - 2;
  const auto at = static_cast<size_t>(std::clamp<ptrdiff_t>(above - 1, 0, last));
  const float slope = (curve.y[at + 1] - curve.y[at]) / (curve.x[at + 1] - curve.x[at]);
  return curve.y[at] + slope * (x - curve.x[at]);
}

// The area over the logarithm of the false positive rate, within a range of it, per decade.
float area_under_log_roc(Curve roc, const FalsePositiveRange& range) {
  if (roc.x.size() < 2) {
    return 0;
  }
  const float ends[2] = {between_points(roc, range.from), between_points(roc, range.to)};
  roc.x.insert(roc.x.end(), {range.from, range.to});
  roc.y.insert(roc.y.end(), std::begin(ends), std::end(ends));
  std::sort(roc.x.begin(), roc.x.end());
  std::sort(roc.y.begin(), roc.y.end());
  const auto last_of = [&roc](float rate) {
    return std::upper_bound(roc.x.begin(), roc.x.end(), rate) - roc.x.begin() - 1;
  };
  Curve part;
  for (ptrdiff_t i = last_of(range.from); i <= last_of(range.to); ++i) {
    part.x.push_back(std::log10(roc.x[static_cast<size_t>(i)]));
    part.y.push_back(roc.y[static_cast<size_t>(i)]);
  }
  return area(part) / (std::log10(range.to) - std::log10(range.from));
}

class CurveMetric final : public Metric {
 public:
  CurveMetric(const CurveSamples& samples, const CurveOptions& options)
      : Metric(samples.states()), samples_(samples), options_(options) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    samples_.update(inputs, state);
  }

  Tensor compute(const MetricState& state) const override {
    const ClassAverage average = samples_.classification().average;
    if (samples_.is_binary()) {
      return scalar(value_of(samples_.sweeps(state).front()));
    }
    if (average == ClassAverage::micro) {
      return scalar(value_of(samples_.sweep_of_all(state)));
    }
    const std::vector<Sweep> sweeps = samples_.sweeps(state);
    if (options_.formula == CurveFormula::equal_error_rate && average == ClassAverage::macro) {
      std::vector<Curve> curves;
      for (const Sweep& sweep : sweeps) {
        curves.push_back(roc_of(sweep, samples_.is_exact()));
      }
      return scalar(equal_error_rate(mean_of(curves, true)));
    }
    std::vector<float> values;
    std::vector<int64_t> support;
    for (const Sweep& sweep : sweeps) {
      values.push_back(value_of(sweep));
      support.push_back(sweep.positives);
    }
    return averaged(values, support);
  }

 private:
  float value_of(const Sweep& sweep) const {
    const bool exact = samples_.is_exact();
    switch (options_.formula) {
      case CurveFormula::average_precision: {
        const float value = average_precision(sweep, exact);
        return std::isnan(value) && samples_.is_binary() ? 0 : value;
      }
      case CurveFormula::equal_error_rate: return equal_error_rate(roc_of(sweep, exact));
      case CurveFormula::area_under_log_roc:
        return area_under_log_roc(roc_of(sweep, exact), options_.range);
      case CurveFormula::area_under_roc: break;
    }
    const Curve roc = roc_of(sweep, exact);
    return options_.max_fpr ? partial_area(roc, *options_.max_fpr) : area(roc);
  }

  // What is nan does not count.
  Tensor averaged(const std::vector<float>& values, const std::vector<int64_t>& support) const {
    const ClassAverage average = samples_.classification().average;
    if (average == ClassAverage::none) {
      return floats({static_cast<int64_t>(values.size())}, values);
    }
    const bool weighted = average == ClassAverage::weighted;
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

  CurveSamples samples_;
  CurveOptions options_;
};

}  // namespace

std::unique_ptr<const Metric> make_curve_metric(const Classification& classification,
                                                const CurveOptions& options) {
  const bool one_curve = classification.task == ClassificationTask::multiclass &&
                         classification.average == ClassAverage::micro;
  return std::make_unique<CurveMetric>(CurveSamples(classification, options.thresholds, one_curve),
                                       options);
}

}  // namespace lockstep
