#include "model/metric/curve_points.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace lockstep {

namespace {

float ratio(int64_t above, int64_t below, float otherwise) {
  return below == 0 ? otherwise : static_cast<float>(above) / static_cast<float>(below);
}

}  // namespace

Curve roc_of(const Sweep& sweep, bool is_exact) {
  Curve curve;
  if (is_exact) {
    curve = {{0}, {0}, {1}};
  }
  for (size_t i = 0; i < sweep.true_positives.size(); ++i) {
    curve.x.push_back(ratio(sweep.false_positives[i], sweep.negatives, 0));
    curve.y.push_back(ratio(sweep.true_positives[i], sweep.positives, 0));
    curve.thresholds.push_back(sweep.thresholds[i]);
  }
  return curve;
}

Curve precision_recall_of(const Sweep& sweep, bool is_exact) {
  Curve curve;
  for (size_t i = sweep.true_positives.size(); i-- > 0;) {
    const int64_t predicted = sweep.true_positives[i] + sweep.false_positives[i];
    curve.x.push_back(ratio(sweep.true_positives[i], predicted, not_a_number));
    curve.y.push_back(ratio(sweep.true_positives[i], sweep.positives,
                            is_exact && sweep.only_zeros ? 1 : not_a_number));
    curve.thresholds.push_back(sweep.thresholds[i]);
  }
  curve.x.push_back(1);
  curve.y.push_back(0);
  return curve;
}

float interpolated(const Curve& curve, float x) {
  const size_t segments = curve.x.size() - 1;
  const auto reached =
      std::count_if(curve.x.begin(), curve.x.end(), [x](float point) { return x >= point; });
  const size_t at =
      std::min(static_cast<size_t>(std::max<ptrdiff_t>(reached - 1, 0)), segments - 1);
  const float step = curve.x[at + 1] - curve.x[at];
  const float slope = step == 0 ? 0 : (curve.y[at + 1] - curve.y[at]) / step;
  return slope * x + (curve.y[at] - slope * curve.x[at]);
}

Curve mean_of(const std::vector<Curve>& curves, bool thresholds_fall) {
  Curve mean;
  for (const Curve& curve : curves) {
    mean.x.insert(mean.x.end(), curve.x.begin(), curve.x.end());
    mean.thresholds.insert(mean.thresholds.end(), curve.thresholds.begin(), curve.thresholds.end());
  }
  // torch sorts nan behind all numbers.
  std::sort(mean.x.begin(), mean.x.end(),
            [](float a, float b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
  std::sort(mean.thresholds.begin(), mean.thresholds.end());
  if (thresholds_fall) {
    std::reverse(mean.thresholds.begin(), mean.thresholds.end());
  }
  for (const float x : mean.x) {
    float sum = 0;
    for (const Curve& curve : curves) {
      sum += interpolated(curve, x);
    }
    mean.y.push_back(sum / static_cast<float>(curves.size()));
  }
  return mean;
}

float area(const Curve& curve) {
  double total = 0;
  for (size_t i = 1; i < curve.x.size(); ++i) {
    total += (static_cast<double>(curve.x[i]) - curve.x[i - 1]) *
             (static_cast<double>(curve.y[i]) + curve.y[i - 1]) / 2;
  }
  return static_cast<float>(total);
}

}  // namespace lockstep
