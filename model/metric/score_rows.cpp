#include "model/metric/score_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"

namespace lockstep {

std::vector<float> evenly_spaced(int64_t count) {
  const float step = 1.0F / static_cast<float>(count - 1);
  std::vector<float> points;
  for (int64_t i = 0; i < count; ++i) {
    points.push_back(i < count / 2 ? step * static_cast<float>(i)
                                   : 1.0F - step * static_cast<float>(count - 1 - i));
  }
  return points;
}

namespace {

void check(const Classification& classes, const Tensor& predictions, const Tensor& target) {
  if (!is_floating(predictions.values.dtype())) {
    throw OperationError("`preds` holds labels, and this metric is made of scores", "give floats");
  }
  if (is_floating(target.values.dtype())) {
    throw OperationError("`target` holds floats: expected labels", "give whole numbers");
  }
  if (classes.task != ClassificationTask::multiclass) {
    check_equal_shapes(predictions, target);
    check_binary_target(target, classes.ignore_index);
  } else {
    check_class_target(target, classes.classes, classes.ignore_index);
  }
  if (classes.task == ClassificationTask::binary) {
    return;
  }
  const bool multilabel = classes.task == ClassificationTask::multilabel;
  std::vector<int64_t> due = predictions.shape;
  const bool has_width = due.size() >= 2 && due[1] == classes.classes;
  if (has_width && !multilabel) {
    due.erase(due.begin() + 1);
  }
  if (!has_width || due != target.shape) {
    throw OperationError(
        fmt::format("`preds` has the shape {} and `target` {}: expected [samples, {}, ..] and {}",
                    text_of_shape(predictions.shape), text_of_shape(target.shape), classes.classes,
                    multilabel ? "the same" : "[samples, ..]"),
        multilabel ? "give as many labels per sample as `num_labels` says"
                   : "give as many scores per sample as `num_classes` says");
  }
}

// [samples, width, inner] as rows of width.
template <class T>
std::vector<T> in_rows(const std::vector<T>& numbers, const std::vector<int64_t>& shape) {
  const auto width = static_cast<size_t>(shape[1]);
  size_t inner = 1;
  for (size_t d = 2; d < shape.size(); ++d) {
    inner *= static_cast<size_t>(shape[d]);
  }
  if (inner == 1) {
    return numbers;
  }
  std::vector<T> rows(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t sample = i / (width * inner);
    const size_t column = i / inner % width;
    rows[(sample * inner + i % inner) * width + column] = numbers[i];
  }
  return rows;
}

void leave_out(int64_t ignored, ScoreRows& rows) {
  size_t kept = 0;
  for (size_t i = 0; i < rows.target.size(); ++i) {
    if (rows.target[i] != ignored) {
      rows.target[kept] = rows.target[i];
      std::copy_n(rows.scores.begin() + static_cast<ptrdiff_t>(i * rows.width), rows.width,
                  rows.scores.begin() + static_cast<ptrdiff_t>(kept * rows.width));
      ++kept;
    }
  }
  rows.target.resize(kept);
  rows.scores.resize(kept * rows.width);
}

}  // namespace

ScoreRows score_rows(const Classification& classification, const MetricInputs& inputs) {
  const Tensor& predictions = *inputs.predictions;
  const Tensor& target = *inputs.target;
  check(classification, predictions, target);
  ScoreRows rows;
  rows.scores = numbers_of<float>(predictions.values);
  rows.target = numbers_of<int64_t>(target.values);
  if (classification.task != ClassificationTask::binary) {
    rows.width = static_cast<size_t>(classification.classes);
    rows.scores = in_rows(rows.scores, predictions.shape);
  }
  if (classification.task == ClassificationTask::multilabel) {
    rows.target = in_rows(rows.target, target.shape);
  } else if (classification.ignore_index) {
    leave_out(*classification.ignore_index, rows);
  }
  rows.scores = classification.task == ClassificationTask::multiclass
                    ? row_probabilities(std::move(rows.scores), classification.classes)
                    : probabilities(std::move(rows.scores));
  return rows;
}

}  // namespace lockstep
