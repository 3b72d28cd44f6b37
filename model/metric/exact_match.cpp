#include <algorithm>

#include "model/expression/evaluation_error.hpp"
#include "model/metric/label_sums.hpp"

namespace lockstep {

namespace {

class ExactMatch final : public Metric {
 public:
  explicit ExactMatch(const Classification& classification)
      : Metric({{"correct", StateReduction::sum, false, zeros(DType::int64, {1})},
                {"total", StateReduction::sum, false, zeros(DType::int64, {1})}}),
        classes_(classification) {}

  // What is ignored counts as right, so pairs are looked at one by one.
  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Tensor& target = *inputs.target;
    if (target.shape.empty()) {
      throw OperationError("`target` is a single number: expected [samples, ..]");
    }
    Classification every = classes_;
    every.ignore_index.reset();
    const bool multilabel = classes_.task == ClassificationTask::multilabel;
    const Tensor known = without_ignored(target);
    const std::vector<LabelPair> pairs = label_pairs(every, *inputs.predictions, known);
    int64_t inner = 1;  // of multilabel each place is a sample
    for (size_t d = 2; multilabel && d < target.shape.size(); ++d) {
      inner *= target.shape[d];
    }
    const int64_t samples = target.shape.front() * inner;
    std::vector<bool> right(static_cast<size_t>(samples), true);
    const int64_t of_sample =
        target.shape.front() == 0 ? 1 : std::ssize(pairs) / target.shape.front();
    for (size_t i = 0; i < pairs.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t sample = at / of_sample * inner + (multilabel ? at % inner : 0);
      const bool ignored = is_ignored(target.values.number(at));
      const bool hit = ignored || pairs[i].predicted == pairs[i].target;
      right[static_cast<size_t>(sample)] = right[static_cast<size_t>(sample)] && hit;
    }
    const auto count = [](StateValue& value, int64_t more) {
      value.front().values.set_integer(0, value.front().values.integer(0) + more);
    };
    count(state[0], std::count(right.begin(), right.end(), true));
    count(state[1], samples);
  }

  Tensor compute(const MetricState& state) const override {
    const float total = single(state[1]);
    return floats({1}, {total == 0 ? 0 : single(state[0]) / total});
  }

 private:
  bool is_ignored(double target) const {
    return classes_.ignore_index && target == static_cast<double>(*classes_.ignore_index);
  }

  Tensor without_ignored(const Tensor& target) const {
    Tensor known = target;
    for (int64_t i = 0; i < known.values.size(); ++i) {
      if (is_ignored(known.values.number(i))) {
        known.values.set(i, 0);
      }
    }
    return known;
  }

  Classification classes_;
};

}  // namespace

std::unique_ptr<const Metric> make_exact_match(const Classification& classification) {
  return std::make_unique<ExactMatch>(classification);
}

}  // namespace lockstep
