#pragma once

#include <optional>
#include <vector>

#include "model/metric/labels.hpp"

namespace lockstep {

/// Counts of one class at falling thresholds.
struct Sweep {
  std::vector<int64_t> true_positives;
  std::vector<int64_t> false_positives;
  std::vector<float> thresholds;
  int64_t positives = 0;
  int64_t negatives = 0;
  bool only_zeros = false;  ///< exact: every label of the metric, of multilabel of this one, is 0
};

/// What curves and areas under them keep of the samples, binary, multiclass (one class against the
/// rest) or multilabel. Without thresholds the states are lists of all scores and targets, joined
/// over the ranks; with them one int64 state `confmat` of counts at each threshold, which is summed
/// and has no point (0, 0) of its own (TorchMetrics functional/classification/
/// {roc,precision_recall_curve}.py).
class CurveSamples {
 public:
  /// `one_curve`: classes are taken for samples of one curve as they come (average: micro).
  CurveSamples(const Classification& classification, std::optional<std::vector<float>> thresholds,
               bool one_curve = false);

  bool is_exact() const { return !thresholds_; }
  bool is_binary() const { return classes_.task == ClassificationTask::binary || one_curve_; }
  const Classification& classification() const { return classes_; }
  std::vector<MetricStateSpec> states() const;
  /// Throws OperationError for inputs that do not fit.
  void update(const MetricInputs& inputs, MetricState& state) const;
  /// One a class or label; throws OperationError where an exact curve has no samples.
  std::vector<Sweep> sweeps(const MetricState& state) const;
  /// All labels of a multilabel state as one (micro, after the fact).
  Sweep sweep_of_all(const MetricState& state) const;

 private:
  struct Samples {
    std::vector<float> scores;
    std::vector<int64_t> targets;
  };
  int64_t curves() const { return is_binary() ? 1 : classes_.classes; }
  void count(const std::vector<float>& scores, const std::vector<int64_t>& targets,
             Values& counts) const;
  bool is_positive(int64_t target, int64_t c) const;
  Samples samples_of(const MetricState& state) const;
  Sweep exact_sweep(const Samples& all, int64_t first, int64_t last) const;
  Sweep binned_sweep(const MetricState& state, int64_t first, int64_t last) const;

  Classification classes_;
  std::optional<std::vector<float>> thresholds_;
  bool one_curve_;
};

}  // namespace lockstep
