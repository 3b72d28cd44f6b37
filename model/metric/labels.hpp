#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/metric/metric.hpp"

namespace lockstep {

/// Settings of a classification metric: what counts as positive, and which averages it forms.
enum class ClassificationTask : uint8_t { binary, multiclass, multilabel };
enum class ClassAverage : uint8_t { micro, macro, weighted, none };

/// Arguments that classification metrics share (TorchMetrics functional/classification).
struct Classification {
  ClassificationTask task = ClassificationTask::binary;
  int64_t classes = 1;  ///< num_classes or num_labels; 1 for binary
  float threshold = 0.5F;
  ClassAverage average = ClassAverage::macro;
  std::optional<int64_t> ignore_index{};
};

/// One prediction as a label beside its true label, in the order of the samples. `label` is its
/// class, or for multilabel the index of its label with `predicted` and `target` 0 or 1.
struct LabelPair {
  int64_t label = 0;
  int64_t predicted = 0;
  int64_t target = 0;
};

/// Scores become labels: by the threshold, after a sigmoid where a score of the batch is outside of
/// [0, 1], or by the largest of a sample's scores (the first of equals). Pairs with the ignored
/// target are left out. Throws OperationError for values that are no labels.
std::vector<LabelPair> label_pairs(const Classification& classification, const Tensor& predictions,
                                   const Tensor& target);

/// Whether all scores lie in [0, 1]; a nan does not.
bool are_probabilities(std::span<const float> scores);
/// The scores of a batch in [0, 1]: as they are, or sigmoid of all (normalize_logits_if_needed).
std::vector<float> probabilities(std::vector<float> scores);
/// Returns rows of `classes` scores as they are, or the softmax of all rows.
std::vector<float> row_probabilities(std::vector<float> scores, int64_t classes);
/// Throws unless every target is 0, 1 or the ignored one.
void check_binary_target(const Tensor& target, const std::optional<int64_t>& ignore_index);
/// Throws unless the target holds whole numbers of [0, classes), or the ignored one.
void check_class_target(const Tensor& target, int64_t classes,
                        const std::optional<int64_t>& ignore_index);

}  // namespace lockstep
