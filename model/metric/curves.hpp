#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/metric/labels.hpp"

namespace lockstep {

/// What one number is made of a curve: AUROC, AveragePrecision, EER and LogAUC.
enum class CurveFormula : uint8_t {
  area_under_roc,
  average_precision,
  equal_error_rate,
  area_under_log_roc
};
struct FalsePositiveRange {
  float from = 0.001F;
  float to = 0.1F;
};
struct CurveOptions {
  CurveFormula formula = CurveFormula::area_under_roc;
  std::optional<std::vector<float>> thresholds{};
  std::optional<float> max_fpr{};  ///< binary area_under_roc only
  FalsePositiveRange range{};      ///< of area_under_log_roc
};
/// The average of `classification` over classes or labels. States: model/metric/curve_samples.hpp.
std::unique_ptr<const Metric> make_curve_metric(const Classification& classification,
                                                const CurveOptions& options);

/// Curves themselves, whose values are lists: [x, y, thresholds], each of them a list of one tensor
/// a class where those differ in length (ROC, PrecisionRecallCurve). Of the average none, micro and
/// macro are meant.
enum class CurveKind : uint8_t { roc, precision_recall };
std::unique_ptr<const Metric> make_curve(const Classification& classification, CurveKind kind,
                                         std::optional<std::vector<float>> thresholds);

/// The best of one score where another is at least `least`, and its threshold:
/// RecallAtFixedPrecision and its likes.
enum class FixedPoint : uint8_t {
  recall_at_precision,
  precision_at_recall,
  sensitivity_at_specificity,
  specificity_at_sensitivity
};
std::unique_ptr<const Metric> make_fixed_point(const Classification& classification,
                                               FixedPoint point, float least,
                                               std::optional<std::vector<float>> thresholds);

}  // namespace lockstep
