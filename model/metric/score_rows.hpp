#pragma once

#include <vector>

#include "model/metric/labels.hpp"

namespace lockstep {

/// Scores in [0, 1] in rows beside their labels, as metrics of scores take them. Binary: one score
/// a row. Further dimensions of the inputs are rows too.
struct ScoreRows {
  size_t width = 1;
  std::vector<float> scores;    ///< [rows, width]
  std::vector<int64_t> target;  ///< a row; of multilabel one a score

  float at(size_t row, size_t column) const { return scores[row * width + column]; }
};

/// Logits become probabilities where a score of the batch lies outside of [0, 1]: by a sigmoid, of
/// classes by a softmax. Rows with the ignored target are left out; of multilabel all are kept.
/// Throws OperationError for inputs that do not fit.
ScoreRows score_rows(const Classification& classification, const MetricInputs& inputs);

/// torch.linspace(0, 1, count) in fp32; count >= 2.
std::vector<float> evenly_spaced(int64_t count);

}  // namespace lockstep
