#include "model/metric/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"

namespace lockstep {

namespace {

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

bool is_ignored(const std::optional<int64_t>& ignore_index, double target) {
  return ignore_index && target == static_cast<double>(*ignore_index);
}

void check_binary_labels(const Tensor& predictions) {
  for (const double value : numbers_of<double>(predictions.values)) {
    if (value != 0 && value != 1) {
      throw OperationError(
          fmt::format("`preds` holds the label {}, and a binary metric knows 0 and 1", value),
          "give scores as floats, or labels 0 and 1");
    }
  }
}

// All elements, scores as 0 or 1.
std::vector<int64_t> thresholded(const Classification& classification, const Tensor& predictions) {
  if (!is_floating(predictions.values.dtype())) {
    check_binary_labels(predictions);
    return numbers_of<int64_t>(predictions.values);
  }
  std::vector<int64_t> labels;
  labels.reserve(static_cast<size_t>(predictions.values.size()));
  for (const float score : probabilities(numbers_of<float>(predictions.values))) {
    labels.push_back(score > classification.threshold ? 1 : 0);
  }
  return labels;
}

int64_t product(std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    elements *= extent;
  }
  return elements;
}

std::vector<int64_t> classes_of_scores(const Classification& classification,
                                       const Tensor& predictions, const Tensor& target) {
  const std::span<const int64_t> shape = predictions.shape;
  std::vector<int64_t> without = predictions.shape;
  without.erase(without.begin() + 1);
  if (shape[1] != classification.classes || without != target.shape) {
    throw OperationError(
        fmt::format("`preds` has the shape {} and `target` {}: of {} classes, scores are [samples, "
                    "{}, ..]",
                    text_of_shape(predictions.shape), text_of_shape(target.shape),
                    classification.classes, classification.classes),
        "give as many scores per sample as `num_classes` says");
  }
  const int64_t inner = product(shape.subspan(2));
  const std::vector<double> scores = numbers_of<double>(predictions.values);
  std::vector<int64_t> labels;
  for (int64_t sample = 0; sample < shape[0]; ++sample) {
    for (int64_t k = 0; k < inner; ++k) {
      int64_t best = 0;
      const auto at = [&](int64_t c) {
        return scores[static_cast<size_t>((sample * shape[1] + c) * inner + k)];
      };
      for (int64_t c = 1; c < shape[1]; ++c) {
        best = at(c) > at(best) ? c : best;
      }
      labels.push_back(best);
    }
  }
  return labels;
}

std::vector<int64_t> class_labels(const Classification& classification, const Tensor& predictions,
                                  const Tensor& target) {
  if (predictions.shape.size() == target.shape.size() + 1 &&
      is_floating(predictions.values.dtype())) {
    return classes_of_scores(classification, predictions, target);
  }
  check_equal_shapes(predictions, target);
  if (is_floating(predictions.values.dtype())) {
    throw OperationError("`preds` holds one float per sample, and classes or scores are expected",
                         "give int labels, or one score for each class");
  }
  std::vector<int64_t> labels = numbers_of<int64_t>(predictions.values);
  for (const int64_t label : labels) {
    if (label < 0 || label >= classification.classes) {
      throw OperationError(fmt::format("`preds` holds the class {}, and there are {} classes, from "
                                       "0",
                                       label, classification.classes),
                           "raise `num_classes`, or fix the labels");
    }
  }
  return labels;
}

}  // namespace

bool are_probabilities(std::span<const float> scores) {
  return std::all_of(scores.begin(), scores.end(),
                     [](float score) { return score >= 0 && score <= 1; });
}

std::vector<float> probabilities(std::vector<float> scores) {
  if (!are_probabilities(scores)) {
    std::transform(scores.begin(), scores.end(), scores.begin(), sigmoid);
  }
  return scores;
}

std::vector<float> row_probabilities(std::vector<float> scores, int64_t classes) {
  if (are_probabilities(scores)) {
    return scores;
  }
  const auto width = static_cast<size_t>(classes);
  for (size_t begin = 0; begin + width <= scores.size(); begin += width) {
    const auto row = scores.begin() + static_cast<ptrdiff_t>(begin);
    const auto end = row + classes;
    const double greatest = *std::max_element(row, end);
    double total = 0;
    for (auto each = row; each != end; ++each) {
      total += std::exp(static_cast<double>(*each) - greatest);
    }
    for (auto each = row; each != end; ++each) {
      *each = static_cast<float>(std::exp(static_cast<double>(*each) - greatest) / total);
    }
  }
  return scores;
}

void check_binary_target(const Tensor& target, const std::optional<int64_t>& ignore_index) {
  for (const double value : numbers_of<double>(target.values)) {
    const bool is_label = (value == 0) | (value == 1);  // no branch on which of the two
    if (!is_label && !is_ignored(ignore_index, value)) {
      throw OperationError(
          fmt::format("`target` holds {}, and a binary metric knows 0 and 1", value),
          "give labels 0 and 1, or name the one to ignore by `ignore_index`");
    }
  }
}

void check_class_target(const Tensor& target, int64_t classes,
                        const std::optional<int64_t>& ignore_index) {
  for (const double value : numbers_of<double>(target.values)) {
    if (is_ignored(ignore_index, value)) {
      continue;
    }
    if (value != std::floor(value) || value < 0 || value >= static_cast<double>(classes)) {
      throw OperationError(
          fmt::format("`target` holds {}, and there are {} classes, from 0", value, classes),
          "raise `num_classes`, or fix the labels");
    }
  }
}

std::vector<LabelPair> label_pairs(const Classification& classification, const Tensor& predictions,
                                   const Tensor& target) {
  const bool multiclass = classification.task == ClassificationTask::multiclass;
  const bool multilabel = classification.task == ClassificationTask::multilabel;
  if (multiclass) {
    check_class_target(target, classification.classes, classification.ignore_index);
  } else {
    check_equal_shapes(predictions, target);
    check_binary_target(target, classification.ignore_index);
  }
  if (multilabel && (target.shape.size() < 2 || target.shape[1] != classification.classes)) {
    throw OperationError(
        fmt::format("`target` has the shape {}, and of {} labels it is [samples, "
                    "{}, ..]",
                    text_of_shape(target.shape), classification.classes, classification.classes),
        "give as many labels per sample as `num_labels` says");
  }
  const std::vector<int64_t> predicted = multiclass
                                             ? class_labels(classification, predictions, target)
                                             : thresholded(classification, predictions);
  const int64_t inner = multilabel ? product(std::span(target.shape).subspan(2)) : 1;
  const std::vector<double> targets = numbers_of<double>(target.values);
  std::vector<LabelPair> pairs;
  pairs.reserve(predicted.size());
  for (size_t i = 0; i < predicted.size(); ++i) {
    const double wanted = targets[i];
    if (is_ignored(classification.ignore_index, wanted)) {
      continue;
    }
    const int64_t label =
        multilabel ? static_cast<int64_t>(i) / inner % classification.classes : int64_t{0};
    pairs.push_back({label, predicted[i], static_cast<int64_t>(wanted)});
  }
  return pairs;
}

}  // namespace lockstep
