#include "model/metric/curve_samples.hpp"

#include <algorithm>
#include <numeric>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/metric/score_rows.hpp"

namespace lockstep {

namespace {

/// One sample as one class sees it.
struct Scored {
  float score = 0;
  bool positive = false;
};

// One point for each score that occurs, from the highest down.
Sweep sweep_of(std::vector<Scored> samples) {
  std::sort(samples.begin(), samples.end(),
            [](const Scored& a, const Scored& b) { return a.score > b.score; });
  Sweep sweep;
  for (size_t i = 0; i < samples.size(); ++i) {
    (samples[i].positive ? sweep.positives : sweep.negatives) += 1;
    if (i + 1 == samples.size() || samples[i + 1].score != samples[i].score) {
      sweep.true_positives.push_back(sweep.positives);
      sweep.false_positives.push_back(sweep.negatives);
      sweep.thresholds.push_back(samples[i].score);
    }
  }
  return sweep;
}

}  // namespace

CurveSamples::CurveSamples(const Classification& classification,
                           std::optional<std::vector<float>> thresholds, bool one_curve)
    : classes_(classification), thresholds_(std::move(thresholds)), one_curve_(one_curve) {}

std::vector<MetricStateSpec> CurveSamples::states() const {
  if (!thresholds_) {
    return {{"preds", StateReduction::cat, true}, {"target", StateReduction::cat, true}};
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(thresholds_->size())};
  if (classes_.task != ClassificationTask::binary) {
    shape.push_back(classes_.classes);
  }
  shape.insert(shape.end(), {2, 2});
  return {{"confmat", StateReduction::sum, false, zeros(DType::int64, shape)}};
}

void CurveSamples::update(const MetricInputs& inputs, MetricState& state) const {
  ScoreRows rows = score_rows(classes_, inputs);
  if (one_curve_) {
    if (thresholds_) {
      throw OperationError("TorchMetrics cannot add the counts of one curve to those of each class",
                           "leave out `thresholds`, or `average: micro`");
    }
    std::vector<int64_t> each;
    for (const int64_t target : rows.target) {
      for (int64_t c = 0; c < classes_.classes; ++c) {
        each.push_back(target == c ? 1 : 0);
      }
    }
    rows.target = std::move(each);
  }
  if (thresholds_) {
    return count(rows.scores, rows.target, state.front().front().values);
  }
  const auto samples = static_cast<int64_t>(rows.scores.size()) / curves();
  const bool multilabel = classes_.task == ClassificationTask::multilabel;
  std::vector<int64_t> shape = {samples};
  if (!is_binary()) {
    shape.push_back(classes_.classes);
  }
  state[0].push_back(floats(shape, rows.scores));
  const DType dtype = one_curve_ ? DType::int64 : inputs.target->values.dtype();
  Tensor labels = zeros(dtype, multilabel ? shape : std::vector{samples});
  for (size_t i = 0; i < rows.target.size(); ++i) {
    labels.values.set_integer(static_cast<int64_t>(i), rows.target[i]);
  }
  state[1].push_back(std::move(labels));
}

bool CurveSamples::is_positive(int64_t target, int64_t c) const {
  return is_binary() || classes_.task == ClassificationTask::multilabel ? target == 1 : target == c;
}

// confmat[threshold, class, is positive, is predicted]. Each sample is counted once, by how many of
// the sorted thresholds it reaches; sums over these bins give the counts at each threshold.
void CurveSamples::count(const std::vector<float>& scores, const std::vector<int64_t>& targets,
                         Values& counts) const {
  const std::vector<float>& thresholds = *thresholds_;
  std::vector<size_t> order(thresholds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return thresholds[a] < thresholds[b]; });
  std::vector<float> sorted;
  for (const size_t index : order) {
    sorted.push_back(thresholds[index]);
  }
  const auto width = static_cast<size_t>(curves());
  const bool multilabel = classes_.task == ClassificationTask::multilabel;
  const size_t bins = sorted.size() + 1;
  std::vector<int64_t> reached(width * 2 * bins);
  for (size_t i = 0; i < scores.size(); ++i) {
    const size_t c = i % width;
    const int64_t target = targets[multilabel ? i : i / width];
    if (multilabel && target == classes_.ignore_index) {
      continue;
    }
    const bool positive = is_positive(target, static_cast<int64_t>(c));
    const auto bin = static_cast<size_t>(std::upper_bound(sorted.begin(), sorted.end(), scores[i]) -
                                         sorted.begin());
    ++reached[(c * 2 + (positive ? 1 : 0)) * bins + bin];
  }
  for (size_t row = 0; row < width * 2; ++row) {
    int64_t below = 0;
    const int64_t all =
        std::accumulate(reached.begin() + static_cast<ptrdiff_t>(row * bins),
                        reached.begin() + static_cast<ptrdiff_t>((row + 1) * bins), int64_t{0});
    for (size_t t = 0; t < sorted.size(); ++t) {
      below += reached[row * bins + t];
      const auto at = static_cast<int64_t>((order[t] * width * 2 + row) * 2);
      counts.set_integer(at, counts.integer(at) + below);
      counts.set_integer(at + 1, counts.integer(at + 1) + all - below);
    }
  }
}

CurveSamples::Samples CurveSamples::samples_of(const MetricState& state) const {
  return {numbers_of<float>(joined_samples(state[0]).values),
          numbers_of<int64_t>(joined_samples(state[1]).values)};
}

// Of the classes [first, last) as one.
Sweep CurveSamples::exact_sweep(const Samples& all, int64_t first, int64_t last) const {
  const bool multilabel = classes_.task == ClassificationTask::multilabel;
  const int64_t width = curves();
  std::vector<Scored> samples;
  bool only_zeros = true;
  for (int64_t row = 0; row < std::ssize(all.scores) / width; ++row) {
    for (int64_t c = first; c < last; ++c) {
      const auto at = static_cast<size_t>(row * width + c);
      const int64_t target = all.targets[multilabel ? at : static_cast<size_t>(row)];
      if (multilabel && target == classes_.ignore_index) {
        continue;
      }
      only_zeros = only_zeros && target == 0;
      samples.push_back({all.scores[at], is_positive(target, c)});
    }
  }
  if (samples.empty()) {
    throw OperationError("the metric has seen no samples: there is no curve",
                         "call update before compute");
  }
  Sweep sweep = sweep_of(std::move(samples));
  sweep.only_zeros = only_zeros;
  return sweep;
}

Sweep CurveSamples::binned_sweep(const MetricState& state, int64_t first, int64_t last) const {
  const Values& counts = state.front().front().values;
  Sweep sweep;
  for (auto t = static_cast<int64_t>(thresholds_->size()) - 1; t >= 0; --t) {
    int64_t sums[4] = {0, 0, 0, 0};
    for (int64_t c = first; c < last; ++c) {
      for (int64_t k = 0; k < 4; ++k) {
        sums[k] += counts.integer((t * curves() + c) * 4 + k);
      }
    }
    sweep.true_positives.push_back(sums[3]);
    sweep.false_positives.push_back(sums[1]);
    sweep.thresholds.push_back((*thresholds_)[static_cast<size_t>(t)]);
    sweep.positives = sums[2] + sums[3];
    sweep.negatives = sums[0] + sums[1];
  }
  return sweep;
}

std::vector<Sweep> CurveSamples::sweeps(const MetricState& state) const {
  std::vector<Sweep> sweeps;
  const Samples all = thresholds_ ? Samples() : samples_of(state);
  for (int64_t c = 0; c < curves(); ++c) {
    sweeps.push_back(thresholds_ ? binned_sweep(state, c, c + 1) : exact_sweep(all, c, c + 1));
  }
  return sweeps;
}

Sweep CurveSamples::sweep_of_all(const MetricState& state) const {
  return thresholds_ ? binned_sweep(state, 0, curves())
                     : exact_sweep(samples_of(state), 0, curves());
}

}  // namespace lockstep
