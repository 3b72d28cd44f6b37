#include "model/metric/label_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/metric/score_rows.hpp"

namespace lockstep {

namespace {

class HingeLoss final : public Metric {
 public:
  HingeLoss(const Classification& classification, const HingeOptions& options)
      : Metric({{"measures", StateReduction::sum, false,
                 options.one_vs_all ? zeros(DType::fp32, {classification.classes}) : scalar(0)},
                {"total", StateReduction::sum, false, scalar(0, DType::int64)}}),
        classes_(classification),
        options_(options) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const ScoreRows rows = score_rows(classes_, inputs);
    std::vector<double> sums(static_cast<size_t>(state[0].front().values.size()));
    for (size_t sample = 0; sample < rows.target.size(); ++sample) {
      add(rows, sample, sums);
    }
    Tensor measures = state[0].front();
    for (size_t i = 0; i < sums.size(); ++i) {
      measures.values.set(static_cast<int64_t>(i), sums[i]);
    }
    add_to(state[0].front(), measures);
    add_to(state[1].front(), scalar(static_cast<double>(rows.target.size()), DType::int64));
  }

  Tensor compute(const MetricState& state) const override {
    Tensor result = state[0].front();
    for (int64_t i = 0; i < result.values.size(); ++i) {
      result.values.set(i, single(state[0], i) / single(state[1]));
    }
    return result;
  }

 private:
  void add(const ScoreRows& rows, size_t sample, std::vector<double>& sums) const {
    const auto target = static_cast<size_t>(rows.target[sample]);
    if (classes_.task == ClassificationTask::binary) {
      const float score = rows.at(sample, 0);
      sums[0] += loss(target == 1 ? score : -score);
    } else if (options_.one_vs_all) {
      for (size_t c = 0; c < rows.width; ++c) {
        sums[c] += loss(c == target ? rows.at(sample, c) : -rows.at(sample, c));
      }
    } else {
      float other = -std::numeric_limits<float>::infinity();
      for (size_t c = 0; c < rows.width; ++c) {
        other = c == target ? other : std::max(other, rows.at(sample, c));
      }
      sums[0] += loss(rows.at(sample, target) - other);
    }
  }

  float loss(float margin) const {
    const float measure = std::max(1 - margin, 0.0F);
    return options_.squared ? measure * measure : measure;
  }

  Classification classes_;
  HingeOptions options_;
};

class CalibrationError final : public Metric {
 public:
  CalibrationError(const Classification& classification, const CalibrationOptions& options)
      : Metric({{"confidences", StateReduction::cat, true},
                {"accuracies", StateReduction::cat, true}}),
        classes_(classification),
        options_(options) {}

  // Of two classes a hit is the label itself, in its own type.
  void update(const MetricInputs& inputs, MetricState& state) const override {
    const ScoreRows rows = score_rows(classes_, inputs);
    const bool binary = classes_.task == ClassificationTask::binary;
    const auto samples = static_cast<int64_t>(rows.target.size());
    std::vector<float> confidences;
    Tensor hits = zeros(binary ? inputs.target->values.dtype() : DType::fp32, {samples});
    for (size_t sample = 0; sample < rows.target.size(); ++sample) {
      size_t best = 0;
      for (size_t c = 1; c < rows.width; ++c) {
        best = rows.at(sample, c) > rows.at(sample, best) ? c : best;
      }
      confidences.push_back(rows.at(sample, best));
      const int64_t hit = binary ? rows.target[sample]
                                 : (static_cast<int64_t>(best) == rows.target[sample] ? 1 : 0);
      hits.values.set(static_cast<int64_t>(sample), static_cast<double>(hit));
    }
    state[0].push_back(floats({samples}, confidences));
    state[1].push_back(std::move(hits));
  }

  Tensor compute(const MetricState& state) const override {
    const std::vector<float> confidences = numbers_of<float>(joined_samples(state[0]).values);
    const std::vector<float> hits = numbers_of<float>(joined_samples(state[1]).values);
    const std::vector<float> bounds = evenly_spaced(options_.bins + 1);
    std::vector<double> of_confidence(bounds.size());
    std::vector<double> of_hits(bounds.size());
    std::vector<double> counts(bounds.size());
    for (size_t i = 0; i < confidences.size(); ++i) {
      const auto above = std::upper_bound(bounds.begin(), bounds.end(), confidences[i]);
      const auto bin = static_cast<size_t>(above - bounds.begin()) - 1;
      of_confidence[bin] += confidences[i];
      of_hits[bin] += hits[i];
      counts[bin] += 1;
    }
    double error = 0;
    for (size_t bin = 0; bin < bounds.size(); ++bin) {
      if (counts[bin] == 0) {
        continue;
      }
      const double apart = std::abs(of_hits[bin] - of_confidence[bin]) / counts[bin];
      const double share = counts[bin] / static_cast<double>(confidences.size());
      error = options_.norm == CalibrationNorm::greatest ? std::max(error, apart)
              : options_.norm == CalibrationNorm::l1     ? error + apart * share
                                                         : error + apart * apart * share;
    }
    return scalar(options_.norm == CalibrationNorm::l2 ? std::sqrt(error) : error);
  }

 private:
  Classification classes_;
  CalibrationOptions options_;
};

class Ranking final : public Metric {
 public:
  Ranking(RankingFormula formula, const Classification& classification)
      : Metric({{"measure", StateReduction::sum, false, scalar(0)},
                {"total", StateReduction::sum, false, scalar(0)}}),
        formula_(formula),
        classes_(classification) {}

  // A label that is ignored has a score and a target below all others.
  void update(const MetricInputs& inputs, MetricState& state) const override {
    ScoreRows rows = score_rows(classes_, inputs);
    for (size_t i = 0; i < rows.scores.size(); ++i) {
      if (classes_.ignore_index && rows.target[i] == *classes_.ignore_index) {
        rows.scores[i] = static_cast<float>(-4 * classes_.classes);
        rows.target[i] = -4 * classes_.classes;
      }
    }
    const size_t samples = rows.width == 0 ? 0 : rows.scores.size() / rows.width;
    const float least =
        rows.scores.empty() ? 0 : *std::min_element(rows.scores.begin(), rows.scores.end());
    double measure = 0;
    bool any = false;
    for (size_t sample = 0; sample < samples; ++sample) {
      const std::vector<bool> relevant = relevant_of(rows, sample);
      const auto count = std::count(relevant.begin(), relevant.end(), true);
      const bool is_split = count > 0 && count < static_cast<int64_t>(rows.width);
      any = any || is_split;
      if (formula_ == RankingFormula::coverage_error) {
        measure += coverage(rows, sample, std::abs(least) + 10);
      } else if (formula_ == RankingFormula::average_precision) {
        measure += is_split ? precision(rows, sample, relevant) : 1;
      } else if (is_split) {
        measure += loss(rows, sample, relevant, count);
      }
    }
    // The loss of a batch without a sample to rank counts as one.
    const bool counts_one = formula_ == RankingFormula::loss && !any;
    add_to(state[0].front(), scalar(measure));
    add_to(state[1].front(), scalar(counts_one ? 1 : static_cast<double>(samples)));
  }

  Tensor compute(const MetricState& state) const override {
    return scalar(single(state[0]) / single(state[1]));
  }

 private:
  static std::vector<bool> relevant_of(const ScoreRows& rows, size_t sample) {
    std::vector<bool> relevant;
    for (size_t label = 0; label < rows.width; ++label) {
      relevant.push_back(rows.target[sample * rows.width + label] == 1);
    }
    return relevant;
  }

  static double coverage(const ScoreRows& rows, size_t sample, float offset) {
    float lowest = std::numeric_limits<float>::infinity();
    for (size_t label = 0; label < rows.width; ++label) {
      const bool irrelevant = rows.target[sample * rows.width + label] == 0;
      lowest = std::min(lowest, rows.at(sample, label) + (irrelevant ? offset : 0));
    }
    double covered = 0;
    for (size_t label = 0; label < rows.width; ++label) {
      covered += rows.at(sample, label) >= lowest ? 1 : 0;
    }
    return covered;
  }

  static double precision(const ScoreRows& rows, size_t sample, const std::vector<bool>& relevant) {
    double sum = 0;
    double labels = 0;
    for (size_t label = 0; label < rows.width; ++label) {
      if (!relevant[label]) {
        continue;
      }
      double rank = 0;
      double among_relevant = 0;
      for (size_t other = 0; other < rows.width; ++other) {
        const bool before = rows.at(sample, other) >= rows.at(sample, label);
        rank += before ? 1 : 0;
        among_relevant += before && relevant[other] ? 1 : 0;
      }
      sum += among_relevant / rank;
      ++labels;
    }
    return sum / labels;
  }

  static double loss(const ScoreRows& rows, size_t sample, const std::vector<bool>& relevant,
                     int64_t count) {
    double sum = 0;
    for (size_t label = 0; label < rows.width; ++label) {
      if (!relevant[label]) {
        continue;
      }
      double below = 0;
      for (size_t other = 0; other < rows.width; ++other) {
        const float apart = rows.at(sample, other) - rows.at(sample, label);
        below += apart < 0 || (apart == 0 && other < label) ? 1 : 0;
      }
      sum += static_cast<double>(rows.width) - below;
    }
    const auto labels = static_cast<double>(count);
    return (sum - 0.5 * labels * (labels + 1)) /
           (labels * (static_cast<double>(rows.width) - labels));
  }

  RankingFormula formula_;
  Classification classes_;
};

}  // namespace

std::unique_ptr<const Metric> make_hinge_loss(const Classification& classification,
                                              const HingeOptions& options) {
  return std::make_unique<HingeLoss>(classification, options);
}

std::unique_ptr<const Metric> make_calibration_error(const Classification& classification,
                                                     const CalibrationOptions& options) {
  return std::make_unique<CalibrationError>(classification, options);
}

std::unique_ptr<const Metric> make_ranking(RankingFormula formula,
                                           const Classification& classification) {
  return std::make_unique<Ranking>(formula, classification);
}

}  // namespace lockstep
