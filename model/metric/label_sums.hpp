#pragma once

#include <memory>

#include "model/metric/labels.hpp"

namespace lockstep {

// Metrics of torchmetrics.classification that add up a number a sample, or keep one.

/// HingeLoss, binary or multiclass: `one_vs_all` has a sum a class (functional/classification/
/// hinge.py).
struct HingeOptions {
  bool squared = false;
  bool one_vs_all = false;
};
std::unique_ptr<const Metric> make_hinge_loss(const Classification& classification,
                                              const HingeOptions& options);

/// CalibrationError, binary or multiclass: lists of confidences and of hits, joined over the ranks,
/// and put into `bins` of equal width at compute (functional/classification/calibration_error.py).
enum class CalibrationNorm : uint8_t { l1, l2, greatest };
struct CalibrationOptions {
  int64_t bins = 15;
  CalibrationNorm norm = CalibrationNorm::l1;
};
std::unique_ptr<const Metric> make_calibration_error(const Classification& classification,
                                                     const CalibrationOptions& options);

/// ExactMatch, multiclass or multilabel: samples of which every place is right.
std::unique_ptr<const Metric> make_exact_match(const Classification& classification);

/// MultilabelCoverageError, MultilabelRankingAveragePrecision and MultilabelRankingLoss
/// (functional/ classification/ranking.py).
enum class RankingFormula : uint8_t { coverage_error, average_precision, loss };
std::unique_ptr<const Metric> make_ranking(RankingFormula formula,
                                           const Classification& classification);

}  // namespace lockstep
