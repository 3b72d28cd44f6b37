#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/metric/labels.hpp"

namespace lockstep {

enum class CurveFormula : uint8_t { area_under_roc, average_precision };

/// AUROC and AveragePrecision, binary and multiclass (one class against the rest). Without
/// thresholds the states are lists of all scores and targets, joined over the ranks; with them one
/// int64 state `confmat` of counts at each threshold, which is summed and has no point (0, 0) of
/// its own (TorchMetrics functional/classification/{roc,auroc,precision_recall_curve}.py).
struct CurveOptions {
  CurveFormula formula = CurveFormula::area_under_roc;
  std::optional<std::vector<float>> thresholds{};
  std::optional<float> max_fpr{};  ///< binary area_under_roc only
};
std::unique_ptr<const Metric> make_curve_metric(const Classification& classification,
                                                const CurveOptions& options);

/// torch.linspace(0, 1, count) in fp32; count >= 2.
std::vector<float> evenly_spaced(int64_t count);

}  // namespace lockstep
