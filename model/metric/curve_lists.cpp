#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "model/expression/evaluation_error.hpp"
#include "model/metric/curve_points.hpp"
#include "model/metric/curves.hpp"

namespace lockstep {

namespace {

Value column_of(const std::vector<float>& numbers) {
  return Value(floats({static_cast<int64_t>(numbers.size())}, numbers));
}

Value triple_of(const Curve& curve) {
  return Value(List{column_of(curve.x), column_of(curve.y), column_of(curve.thresholds)});
}

class CurvePoints final : public MetricOfSeveral {
 public:
  CurvePoints(const CurveSamples& samples, CurveKind kind)
      : MetricOfSeveral(samples.states()), samples_(samples), kind_(kind) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    samples_.update(inputs, state);
  }

  Value value(const MetricState& state) const override {
    std::vector<Curve> curves;
    for (const Sweep& sweep : samples_.sweeps(state)) {
      curves.push_back(kind_ == CurveKind::roc ? roc_of(sweep, samples_.is_exact())
                                               : precision_recall_of(sweep, samples_.is_exact()));
    }
    if (samples_.is_binary()) {
      return triple_of(curves.front());
    }
    if (samples_.classification().average == ClassAverage::macro) {
      return triple_of(mean_of(curves, kind_ == CurveKind::roc));
    }
    return samples_.is_exact() ? lists_of(curves) : rows_of(curves);
  }

 private:
  static Value lists_of(const std::vector<Curve>& curves) {
    List x;
    List y;
    List thresholds;
    for (const Curve& curve : curves) {
      x.push_back(column_of(curve.x));
      y.push_back(column_of(curve.y));
      thresholds.push_back(column_of(curve.thresholds));
    }
    return Value(List{Value(std::move(x)), Value(std::move(y)), Value(std::move(thresholds))});
  }

  // Binned curves have equally many points: [classes, points], and one list of thresholds.
  static Value rows_of(const std::vector<Curve>& curves) {
    std::vector<float> x;
    std::vector<float> y;
    for (const Curve& curve : curves) {
      x.insert(x.end(), curve.x.begin(), curve.x.end());
      y.insert(y.end(), curve.y.begin(), curve.y.end());
    }
    const std::vector<int64_t> shape = {std::ssize(curves), std::ssize(curves.front().x)};
    return Value(List{Value(floats(shape, x)), Value(floats(shape, y)),
                      column_of(curves.front().thresholds)});
  }

  CurveSamples samples_;
  CurveKind kind_;
};

struct Found {
  float score = 0;
  float threshold = 0;
};

// The greatest score, of equal ones the greatest other, of these the highest threshold.
Found best_of(const std::vector<float>& score, const std::vector<float>& other,
              const std::vector<float>& thresholds, float least) {
  std::optional<std::tuple<float, float, float>> best;
  for (size_t i = 0; i < thresholds.size(); ++i) {
    if (!(other[i] >= least)) {
      continue;
    }
    if (std::isnan(score[i])) {
      throw OperationError("a class without positives has no recall: TorchMetrics raises here");
    }
    best = std::max(best, std::optional(std::tuple(score[i], other[i], thresholds[i])));
  }
  if (!best || std::get<0>(*best) == 0) {
    return {0, not_a_number};
  }
  return {std::get<0>(*best), std::get<2>(*best)};
}

// The first point of the greatest score along a ROC curve.
Found first_best_of(const std::vector<float>& score, const std::vector<float>& other,
                    const std::vector<float>& thresholds, float least) {
  constexpr float of_no_point = 1e6F;
  Found found{0, of_no_point};
  bool any = false;
  for (size_t i = 0; i < thresholds.size(); ++i) {
    if (other[i] >= least && (!any || score[i] > found.score)) {
      found = {score[i], thresholds[i]};
      any = true;
    }
  }
  return found;
}

class FixedPointMetric final : public MetricOfSeveral {
 public:
  FixedPointMetric(const CurveSamples& samples, FixedPoint point, float least)
      : MetricOfSeveral(samples.states()), samples_(samples), point_(point), least_(least) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    samples_.update(inputs, state);
  }

  Value value(const MetricState& state) const override {
    std::vector<float> scores;
    std::vector<float> thresholds;
    for (const Sweep& sweep : samples_.sweeps(state)) {
      const Found found = found_on(sweep);
      scores.push_back(found.score);
      thresholds.push_back(found.threshold);
    }
    if (samples_.is_binary()) {
      return Value(List{Value(scalar(scores.front())), Value(scalar(thresholds.front()))});
    }
    return Value(List{column_of(scores), column_of(thresholds)});
  }

 private:
  Found found_on(const Sweep& sweep) const {
    if (point_ == FixedPoint::recall_at_precision || point_ == FixedPoint::precision_at_recall) {
      const Curve curve = precision_recall_of(sweep, samples_.is_exact());
      return point_ == FixedPoint::recall_at_precision
                 ? best_of(curve.y, curve.x, curve.thresholds, least_)
                 : best_of(curve.x, curve.y, curve.thresholds, least_);
    }
    const Curve curve = roc_of(sweep, samples_.is_exact());
    std::vector<float> specificity;
    for (const float rate : curve.x) {
      specificity.push_back(1 - rate);
    }
    return point_ == FixedPoint::sensitivity_at_specificity
               ? first_best_of(curve.y, specificity, curve.thresholds, least_)
               : first_best_of(specificity, curve.y, curve.thresholds, least_);
  }

  CurveSamples samples_;
  FixedPoint point_;
  float least_;
};

}  // namespace

std::unique_ptr<const Metric> make_curve(const Classification& classification, CurveKind kind,
                                         std::optional<std::vector<float>> thresholds) {
  const bool one_curve = classification.task == ClassificationTask::multiclass &&
                         classification.average == ClassAverage::micro;
  return std::make_unique<CurvePoints>(
      CurveSamples(classification, std::move(thresholds), one_curve), kind);
}

std::unique_ptr<const Metric> make_fixed_point(const Classification& classification,
                                               FixedPoint point, float least,
                                               std::optional<std::vector<float>> thresholds) {
  return std::make_unique<FixedPointMetric>(CurveSamples(classification, std::move(thresholds)),
                                            point, least);
}

}  // namespace lockstep
