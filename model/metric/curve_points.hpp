#pragma once

#include <limits>
#include <vector>

#include "model/metric/curve_samples.hpp"

namespace lockstep {

inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// A curve as TorchMetrics gives it, point by point.
struct Curve {
  std::vector<float> x;
  std::vector<float> y;
  std::vector<float> thresholds;
};

/// x: false positive rate, y: true positive rate, from the highest threshold down. Exact curves
/// begin at (0, 0), binned ones at the point of the highest threshold.
Curve roc_of(const Sweep& sweep, bool is_exact);
/// x: precision, y: recall, from the lowest threshold up, and (1, 0) at the end without one.
Curve precision_recall_of(const Sweep& sweep, bool is_exact);

/// One curve as the mean of several along all of their x.
Curve mean_of(const std::vector<Curve>& curves, bool thresholds_fall);
/// The curve's y at x; constant slopes between points, 0 where two have the same x.
float interpolated(const Curve& curve, float x);
/// By trapezoids.
float area(const Curve& curve);

}  // namespace lockstep
