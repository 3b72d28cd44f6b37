#include "model/metric/confusion_matrix.hpp"

#include <cmath>
#include <limits>
#include <numeric>

namespace lockstep {

namespace {

/// What counts pairs of labels.
class PairCounts : public Metric {
 public:
  explicit PairCounts(const Classification& classification)
      : Metric({{"confmat", StateReduction::sum, false,
                 zeros(DType::int64, shape_of(classification))}}),
        classes_(classification) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    Values& counts = state.front().front().values;
    const int64_t side = classes_.task == ClassificationTask::multiclass ? classes_.classes : 2;
    for (const LabelPair& pair : label_pairs(classes_, *inputs.predictions, *inputs.target)) {
      const int64_t at = (pair.label * side + pair.target) * side + pair.predicted;
      counts.set_integer(at, counts.integer(at) + 1);
    }
  }

 protected:
  const Classification& classes() const { return classes_; }

 private:
  static std::vector<int64_t> shape_of(const Classification& classification) {
    const int64_t classes = classification.classes;
    switch (classification.task) {
      case ClassificationTask::binary: return {2, 2};
      case ClassificationTask::multiclass: return {classes, classes};
      case ClassificationTask::multilabel: return {classes, 2, 2};
    }
    return {};
  }

  Classification classes_;
};

class ConfusionMatrix final : public PairCounts {
 public:
  ConfusionMatrix(const Classification& classification, ConfusionNormalization normalization)
      : PairCounts(classification), normalization_(normalization) {}

  Tensor compute(const MetricState& state) const override {
    const Tensor& counts = state.front().front();
    if (normalization_ == ConfusionNormalization::none) {
      return counts;
    }
    const int64_t side = counts.shape.back();
    Tensor result = zeros(DType::fp32, counts.shape);
    for (int64_t i = 0; i < counts.values.size(); ++i) {
      const double sum = total(counts, i, side);
      result.values.set(i, sum == 0 ? 0 : counts.values.number(i) / sum);
    }
    return result;
  }

 private:
  // Of the row, the column or the whole matrix that element `i` stands in.
  double total(const Tensor& counts, int64_t i, int64_t side) const {
    const int64_t matrix = i / (side * side) * side * side;
    double sum = 0;
    for (int64_t k = matrix; k < matrix + side * side; ++k) {
      const bool same_row = (k - matrix) / side == (i - matrix) / side;
      const bool same_column = (k - matrix) % side == (i - matrix) % side;
      const bool counted = normalization_ == ConfusionNormalization::by_all ||
                           (normalization_ == ConfusionNormalization::by_target && same_row) ||
                           (normalization_ == ConfusionNormalization::by_prediction && same_column);
      sum += counted ? counts.values.number(k) : 0;
    }
    return sum;
  }

  ConfusionNormalization normalization_;
};

/// One matrix of counts, as the formulas read it.
struct Matrix {
  Matrix(const Values& counts, int64_t begin, int64_t size) : side(size) {
    for (int64_t i = begin; i < begin + size * size; ++i) {
      entries.push_back(counts.number(i));
    }
  }
  double at(int64_t row, int64_t column) const {
    return entries[static_cast<size_t>(row * side + column)];
  }
  double row(int64_t which) const {
    double sum = 0;
    for (int64_t c = 0; c < side; ++c) {
      sum += at(which, c);
    }
    return sum;
  }
  double column(int64_t which) const {
    double sum = 0;
    for (int64_t r = 0; r < side; ++r) {
      sum += at(r, which);
    }
    return sum;
  }
  double sum() const { return std::accumulate(entries.begin(), entries.end(), 0.0); }

  int64_t side;
  std::vector<double> entries;
};

Matrix whole(const MetricState& state) {
  const Tensor& counts = state.front().front();
  return Matrix(counts.values, 0, counts.shape.back());
}

class CohenKappa final : public PairCounts {
 public:
  CohenKappa(const Classification& classification, KappaWeights weights)
      : PairCounts(classification), weights_(weights) {}

  Tensor compute(const MetricState& state) const override {
    const Matrix matrix = whole(state);
    const double all = matrix.sum();
    std::vector<double> rows;
    std::vector<double> columns;
    for (int64_t c = 0; c < matrix.side; ++c) {
      rows.push_back(matrix.row(c));
      columns.push_back(matrix.column(c));
    }
    double observed = 0;
    double expected = 0;
    for (int64_t r = 0; r < matrix.side; ++r) {
      for (int64_t c = 0; c < matrix.side; ++c) {
        const double weight = weight_of(std::abs(r - c));
        observed += weight * matrix.at(r, c);
        expected += weight * rows[static_cast<size_t>(r)] * columns[static_cast<size_t>(c)] / all;
      }
    }
    return scalar(1 - observed / expected);
  }

 private:
  double weight_of(int64_t apart) const {
    const auto distance = static_cast<double>(apart);
    return weights_ == KappaWeights::linear      ? distance
           : weights_ == KappaWeights::quadratic ? distance * distance
                                                 : (apart == 0 ? 0 : 1);
  }

  KappaWeights weights_;
};

class JaccardIndex final : public PairCounts {
 public:
  JaccardIndex(const Classification& classification, float zero_division)
      : PairCounts(classification), zero_division_(zero_division) {}

  Tensor compute(const MetricState& state) const override {
    if (classes().task == ClassificationTask::binary) {
      const Matrix matrix = whole(state);
      return scalar(divided(matrix.at(1, 1), matrix.at(0, 1) + matrix.at(1, 0) + matrix.at(1, 1)));
    }
    const std::vector<Part> parts = parts_of(state);
    double both = 0;
    double either = 0;
    double weights = 0;
    std::vector<float> scores;
    for (const Part& part : parts) {
      both += part.both;
      either += part.is_ignored ? 0 : part.either;
      weights += part.weight;
      scores.push_back(divided(part.both, part.either));
    }
    if (classes().average == ClassAverage::none) {
      return floats({classes().classes}, scores);
    }
    if (classes().average == ClassAverage::micro) {
      return scalar(divided(both, either));
    }
    double result = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      result += parts[i].weight * scores[i] / weights;
    }
    return scalar(result);
  }

 private:
  struct Part {
    double both = 0;
    double either = 0;
    double weight = 0;
    bool is_ignored = false;
  };

  float divided(double both, double either) const {
    return either == 0 ? zero_division_ : static_cast<float>(both / either);
  }

  std::vector<Part> parts_of(const MetricState& state) const {
    const bool multilabel = classes().task == ClassificationTask::multilabel;
    const bool weighted = classes().average == ClassAverage::weighted;
    std::vector<Part> parts;
    if (multilabel) {
      for (int64_t label = 0; label < classes().classes; ++label) {
        const Matrix matrix(state.front().front().values, label * 4, 2);
        const double both = matrix.at(1, 1);
        parts.push_back({both, both + matrix.at(0, 1) + matrix.at(1, 0),
                         weighted ? both + matrix.at(1, 0) : 1});
      }
      return parts;
    }
    const Matrix matrix = whole(state);
    for (int64_t c = 0; c < matrix.side; ++c) {
      const double held = matrix.row(c);
      const double predicted = matrix.column(c);
      const bool ignored = classes().ignore_index == c;
      const bool absent = held + predicted == 0 || ignored;
      parts.push_back({matrix.at(c, c), held + predicted - matrix.at(c, c),
                       weighted ? held : (absent ? 0.0 : 1.0), ignored});
    }
    return parts;
  }

  float zero_division_;
};

// A row or a column of a matrix of two classes is empty: matthews_corrcoef.py has a limit for each.
double matthews_of_empty(double tn, double fp, double fn, double tp) {
  constexpr double epsilon = std::numeric_limits<float>::epsilon();
  const double root = std::sqrt(epsilon);
  double above = 0;
  if (fn == 0 && tn == 0) {
    above = root * (tp - fp);
  } else if (fp == 0 && tn == 0) {
    above = root * (tp - fn);
  } else if (tp == 0 && fn == 0) {
    above = root * (tn - fp);
  } else if (tp == 0 && fp == 0) {
    above = root * (tn - fn);
  }
  return above / std::sqrt((tp + fp + epsilon) * (tp + fn + epsilon) * (tn + fp + epsilon) *
                           (tn + fn + epsilon));
}

double matthews(const Matrix& matrix) {
  if (matrix.side == 2) {
    const double right = matrix.at(0, 0) + matrix.at(1, 1);
    const double wrong = matrix.at(0, 1) + matrix.at(1, 0);
    if ((right == 0) != (wrong == 0)) {
      return wrong == 0 ? 1 : -1;
    }
  }
  const double all = matrix.sum();
  double right = 0;
  double both = 0;
  double predicted = 0;
  double held = 0;
  for (int64_t c = 0; c < matrix.side; ++c) {
    right += matrix.at(c, c);
    both += matrix.row(c) * matrix.column(c);
    predicted += matrix.column(c) * matrix.column(c);
    held += matrix.row(c) * matrix.row(c);
  }
  const double below = (all * all - predicted) * (all * all - held);
  if (below == 0) {
    return matrix.side == 2 ? matthews_of_empty(matrix.at(0, 0), matrix.at(0, 1), matrix.at(1, 0),
                                                matrix.at(1, 1))
                            : 0;
  }
  return (right * all - both) / std::sqrt(below);
}

class Matthews final : public PairCounts {
 public:
  using PairCounts::PairCounts;

  Tensor compute(const MetricState& state) const override {
    Matrix matrix = whole(state);
    for (int64_t label = 1;
         classes().task == ClassificationTask::multilabel && label < classes().classes; ++label) {
      const Matrix more(state.front().front().values, label * 4, 2);
      for (size_t i = 0; i < matrix.entries.size(); ++i) {
        matrix.entries[i] += more.entries[i];
      }
    }
    return scalar(matthews(matrix));
  }
};

}  // namespace

std::unique_ptr<const Metric> make_confusion_matrix(const Classification& classification,
                                                    ConfusionNormalization normalization) {
  return std::make_unique<ConfusionMatrix>(classification, normalization);
}

std::unique_ptr<const Metric> make_cohen_kappa(const Classification& classification,
                                               KappaWeights weights) {
  return std::make_unique<CohenKappa>(classification, weights);
}

std::unique_ptr<const Metric> make_jaccard_index(const Classification& classification,
                                                 float zero_division) {
  return std::make_unique<JaccardIndex>(classification, zero_division);
}

std::unique_ptr<const Metric> make_matthews(const Classification& classification) {
  return std::make_unique<Matthews>(classification);
}

}  // namespace lockstep
