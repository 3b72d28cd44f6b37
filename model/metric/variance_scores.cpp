#include "model/metric/variance_scores.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <cmath>
#include <limits>

#include "model/expression/evaluation_error.hpp"
#include "model/metric/sample_columns.hpp"

namespace lockstep {

namespace {

MetricStateSpec sum_state(const char* name, const Tensor& initial = scalar(0)) {
  return {name, StateReduction::sum, false, initial};
}

/// Sums over the samples, one an output.
struct Sums {
  explicit Sums(const SampleColumns& columns)
      : target(zeros(DType::fp32, columns.shape_of_sum())),
        squared_target(target),
        error(target),
        squared_error(target) {
    for (size_t output = 0; output < columns.target.size(); ++output) {
      double sums[4] = {0, 0, 0, 0};
      for (size_t i = 0; i < columns.samples(); ++i) {
        const float wanted = columns.target[output][i];
        const float apart = wanted - columns.predictions[output][i];
        sums[0] += wanted;
        sums[1] += wanted * wanted;
        sums[2] += apart;
        sums[3] += apart * apart;
      }
      const auto at = static_cast<int64_t>(output);
      target.values.set(at, sums[0]);
      squared_target.values.set(at, sums[1]);
      error.values.set(at, sums[2]);
      squared_error.values.set(at, sums[3]);
    }
  }
  Tensor target, squared_target, error, squared_error;
};

// `weights` are the variances of the targets.
Tensor averaged(const std::vector<float>& scores, const std::vector<float>& weights,
                OutputAverage average, const std::vector<int64_t>& shape) {
  if (average == OutputAverage::raw_values) {
    return floats(shape, scores);
  }
  double total = 0;
  for (const float weight : weights) {
    total += weight;
  }
  double result = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    result += average == OutputAverage::uniform
                  ? scores[i] / static_cast<double>(scores.size())
                  : static_cast<float>(weights[i] / total) * scores[i];
  }
  return scalar(result);
}

class R2Score final : public Metric {
 public:
  R2Score(int64_t adjusted, OutputAverage average)
      : Metric({sum_state("sum_squared_error"), sum_state("sum_error"), sum_state("residual"),
                sum_state("total", scalar(0, DType::int64))}),
        adjusted_(adjusted),
        average_(average) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const SampleColumns columns = sample_columns(inputs);
    const Sums sums(columns);
    add_broadcast(state[0].front(), sums.squared_target);
    add_broadcast(state[1].front(), sums.target);
    add_broadcast(state[2].front(), sums.squared_error);
    add_to(state[3].front(), scalar(static_cast<double>(columns.samples()), DType::int64));
  }

  Tensor compute(const MetricState& state) const override {
    const int64_t samples = state[3].front().values.integer(0);
    if (samples < 2) {
      throw OperationError(fmt::format("R2Score needs at least two samples, and has {}", samples));
    }
    constexpr float near_zero = 1e-4F;
    std::vector<float> scores;
    std::vector<float> totals;
    for (int64_t i = 0; i < state[0].front().values.size(); ++i) {
      const float sum = single(state[1], i);
      const float total = single(state[0], i) - sum * (sum / static_cast<float>(samples));
      const float residual = single(state[2], i);
      float score = 1;
      if (std::abs(residual) > near_zero) {
        score = std::abs(total) > near_zero ? 1 - residual / total : 0;
      }
      scores.push_back(score);
      totals.push_back(total);
    }
    Tensor result = averaged(scores, totals, average_, state[0].front().shape);
    if (adjusted_ != 0 && adjusted_ < samples - 1) {
      for (int64_t i = 0; i < result.values.size(); ++i) {
        const auto score = static_cast<float>(result.values.number(i));
        result.values.set(i, 1 - (1 - score) * static_cast<float>(samples - 1) /
                                     static_cast<float>(samples - adjusted_ - 1));
      }
    }
    return result;
  }

 private:
  int64_t adjusted_;
  OutputAverage average_;
};

class RelativeSquaredError final : public Metric {
 public:
  RelativeSquaredError(int64_t outputs, bool squared)
      : Metric({sum_state("sum_squared_error", zeros(DType::fp32, {outputs})),
                sum_state("sum_error", zeros(DType::fp32, {outputs})),
                sum_state("residual", zeros(DType::fp32, {outputs})),
                sum_state("total", scalar(0, DType::int64))}),
        outputs_(outputs),
        squared_(squared) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const SampleColumns columns = sample_columns(inputs, outputs_);
    const Sums sums(columns);
    add_to(state[0].front(), sums.squared_target);
    add_to(state[1].front(), sums.target);
    add_to(state[2].front(), sums.squared_error);
    add_to(state[3].front(), scalar(static_cast<double>(columns.samples()), DType::int64));
  }

  Tensor compute(const MetricState& state) const override {
    double sum = 0;
    for (int64_t i = 0; i < outputs_; ++i) {
      const float of_target = single(state[1], i);
      const float total = single(state[0], i) - of_target * of_target / single(state[3]);
      const float error =
          single(state[2], i) / std::max(total, std::numeric_limits<float>::epsilon());
      sum += squared_ ? error : std::sqrt(error);
    }
    return scalar(sum / static_cast<double>(outputs_));
  }

 private:
  int64_t outputs_;
  bool squared_;
};

class ExplainedVariance final : public Metric {
 public:
  explicit ExplainedVariance(OutputAverage average)
      : Metric({sum_state("sum_error"), sum_state("sum_squared_error"), sum_state("sum_target"),
                sum_state("sum_squared_target"), sum_state("num_obs")}),
        average_(average) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const SampleColumns columns = sample_columns(inputs);
    const Sums sums(columns);
    add_broadcast(state[0].front(), sums.error);
    add_broadcast(state[1].front(), sums.squared_error);
    add_broadcast(state[2].front(), sums.target);
    add_broadcast(state[3].front(), sums.squared_target);
    add_to(state[4].front(), scalar(static_cast<double>(columns.samples())));
  }

  Tensor compute(const MetricState& state) const override {
    const float samples = single(state[4]);
    std::vector<float> scores;
    std::vector<float> variances;
    for (int64_t i = 0; i < state[0].front().values.size(); ++i) {
      const float error = single(state[0], i) / samples;
      const float target = single(state[2], i) / samples;
      const float unexplained = single(state[1], i) / samples - error * error;
      const float variance = single(state[3], i) / samples - target * target;
      scores.push_back(unexplained == 0 ? 1 : variance == 0 ? 0 : 1 - unexplained / variance);
      variances.push_back(variance);
    }
    return averaged(scores, variances, average_, state[0].front().shape);
  }

 private:
  OutputAverage average_;
};

}  // namespace

std::unique_ptr<const Metric> make_r2_score(int64_t adjusted, OutputAverage average) {
  return std::make_unique<R2Score>(adjusted, average);
}

std::unique_ptr<const Metric> make_relative_squared_error(int64_t outputs, bool squared) {
  return std::make_unique<RelativeSquaredError>(outputs, squared);
}

std::unique_ptr<const Metric> make_explained_variance(OutputAverage average) {
  return std::make_unique<ExplainedVariance>(average);
}

}  // namespace lockstep
