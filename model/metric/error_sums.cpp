#include "model/metric/error_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/metric/sample_columns.hpp"

namespace lockstep {

namespace {

constexpr float least_scale = 1.17e-06F;

std::vector<MetricStateSpec> error_states(ErrorSumFormula formula) {
  const auto sum_of = [](const char* name, DType dtype = DType::fp32) {
    return MetricStateSpec{name, StateReduction::sum, false, scalar(0, dtype)};
  };
  switch (formula) {
    case ErrorSumFormula::squared_log:
      return {sum_of("sum_squared_log_error"), sum_of("total", DType::int64)};
    case ErrorSumFormula::percentage:
    case ErrorSumFormula::symmetric_percentage:
      return {sum_of("sum_abs_per_error"), sum_of("total")};
    case ErrorSumFormula::weighted_percentage:
      return {sum_of("sum_abs_error"), sum_of("sum_scale")};
    case ErrorSumFormula::minkowski: return {sum_of("minkowski_dist_sum")};
    case ErrorSumFormula::tweedie:
      return {sum_of("sum_deviance_score"), sum_of("num_observations", DType::int64)};
  }
  return {};
}

// tweedie_deviance.py; powers 0, 1 and 2 are limits of the general term.
float deviance(float given, float wanted, float power) {
  if (power == 0) {
    return (wanted - given) * (wanted - given);
  }
  if (power == 1) {
    const float ratio = wanted == 0 ? 0 : wanted * std::log(wanted / given);
    return 2 * (ratio + given - wanted);
  }
  if (power == 2) {
    return 2 * (std::log(given / wanted) + wanted / given - 1);
  }
  const float first = std::pow(std::max(wanted, 0.0F), 2 - power) / ((1 - power) * (2 - power));
  const float second = wanted * std::pow(given, 1 - power) / (1 - power);
  const float third = std::pow(given, 2 - power) / (2 - power);
  return 2 * (first - second + third);
}

void check_deviance(float given, float wanted, float power) {
  if (power == 0) {
    return;
  }
  const bool target_may_be_zero = power >= 1 && power < 2;
  if (given <= 0) {
    throw OperationError(fmt::format("`preds` holds {}, and a deviance of power {} is of positive "
                                     "predictions",
                                     given, power),
                         "give predictions above 0, or power: 0");
  }
  if (power >= 1 && (target_may_be_zero ? wanted < 0 : wanted <= 0)) {
    throw OperationError(
        fmt::format("`target` holds {}, which a deviance of power {} does not take", wanted, power),
        target_may_be_zero ? "give targets of at least 0" : "give targets above 0");
  }
}

class ErrorSum final : public Metric {
 public:
  ErrorSum(ErrorSumFormula formula, float exponent)
      : Metric(error_states(formula)), formula_(formula), exponent_(exponent) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    check_equal_shapes(*inputs.predictions, *inputs.target);
    const std::vector<float> given = numbers_of<float>(inputs.predictions->values);
    const std::vector<float> wanted = numbers_of<float>(inputs.target->values);
    double sum = 0;
    double scale = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      sum += error(given[i], wanted[i]);
      scale += std::abs(wanted[i]);
    }
    if (formula_ == ErrorSumFormula::symmetric_percentage) {
      sum = 2 * static_cast<float>(sum);
    }
    add_to(state[0].front(), scalar(sum));
    if (formula_ == ErrorSumFormula::weighted_percentage) {
      add_to(state[1].front(), scalar(scale));
    } else if (formula_ != ErrorSumFormula::minkowski) {
      add_to(state[1].front(),
             scalar(static_cast<double>(given.size()), state[1].front().values.dtype()));
    }
  }

  Tensor compute(const MetricState& state) const override {
    const float sum = single(state[0]);
    if (formula_ == ErrorSumFormula::minkowski) {
      return scalar(std::pow(sum, 1 / exponent_));
    }
    const float divisor = single(state[1]);
    return scalar(sum / (formula_ == ErrorSumFormula::weighted_percentage
                             ? std::max(divisor, least_scale)
                             : divisor));
  }

 private:
  float error(float given, float wanted) const {
    const float difference = std::abs(given - wanted);
    switch (formula_) {
      case ErrorSumFormula::squared_log: {
        const float log = std::log1p(given) - std::log1p(wanted);
        return log * log;
      }
      case ErrorSumFormula::percentage: return difference / std::max(std::abs(wanted), least_scale);
      case ErrorSumFormula::symmetric_percentage:
        return difference / std::max(std::abs(wanted) + std::abs(given), least_scale);
      case ErrorSumFormula::weighted_percentage: return difference;
      case ErrorSumFormula::minkowski: return std::pow(difference, exponent_);
      case ErrorSumFormula::tweedie:
        check_deviance(given, wanted, exponent_);
        return deviance(given, wanted, exponent_);
    }
    return 0;
  }

  ErrorSumFormula formula_;
  float exponent_;
};

class LogCosh final : public Metric {
 public:
  explicit LogCosh(int64_t outputs)
      : Metric({{"sum_log_cosh_error", StateReduction::sum, false, zeros(DType::fp32, {outputs})},
                {"total", StateReduction::sum, false, scalar(0, DType::int64)}}),
        outputs_(outputs) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const SampleColumns columns = sample_columns(inputs, outputs_);
    Tensor sums = zeros(DType::fp32, {outputs_});
    for (size_t output = 0; output < columns.target.size(); ++output) {
      double sum = 0;
      for (size_t i = 0; i < columns.samples(); ++i) {
        const float error = columns.predictions[output][i] - columns.target[output][i];
        sum += std::log((std::exp(error) + std::exp(-error)) / 2);
      }
      sums.values.set(static_cast<int64_t>(output), sum);
    }
    add_to(state[0].front(), sums);
    add_to(state[1].front(), scalar(static_cast<double>(columns.samples()), DType::int64));
  }

  Tensor compute(const MetricState& state) const override {
    Tensor result = state[0].front();
    for (int64_t i = 0; i < result.values.size(); ++i) {
      result.values.set(i, single(state[0], i) / single(state[1]));
    }
    return result;
  }

 private:
  int64_t outputs_;
};

class RankedProbability final : public Metric {
 public:
  RankedProbability()
      : Metric({{"score", StateReduction::sum, false, zeros(DType::fp32, {1})},
                {"total", StateReduction::sum, false, zeros(DType::fp32, {1})}}) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Tensor& predictions = *inputs.predictions;
    const Tensor& target = *inputs.target;
    if (predictions.shape.size() != 2 || target.shape.size() != 1 ||
        predictions.shape[0] != target.shape[0] || predictions.shape[1] < 2) {
      throw OperationError(
          fmt::format("`preds` has the shape {} and `target` {}: expected [samples, members] of at "
                      "least two members, and [samples]",
                      text_of_shape(predictions.shape), text_of_shape(target.shape)));
    }
    const auto members = static_cast<size_t>(predictions.shape[1]);
    const std::vector<float> given = numbers_of<float>(predictions.values);
    const std::vector<float> wanted = numbers_of<float>(target.values);
    double total = 0;
    for (size_t sample = 0; sample < wanted.size(); ++sample) {
      double apart = 0;
      double among = 0;
      for (size_t i = 0; i < members; ++i) {
        const float one = given[sample * members + i];
        apart += std::abs(one - wanted[sample]);
        for (size_t k = 0; k < members; ++k) {
          among += std::abs(one - given[sample * members + k]);
        }
      }
      const auto count = static_cast<double>(members);
      total += apart / count - among / (2 * count * count);
    }
    add_to(state[0].front(), floats({1}, {static_cast<float>(total)}));
    add_to(state[1].front(), floats({1}, {static_cast<float>(wanted.size())}));
  }

  Tensor compute(const MetricState& state) const override {
    return floats({1}, {single(state[0]) / single(state[1])});
  }
};

}  // namespace

std::unique_ptr<const Metric> make_error_sum(ErrorSumFormula formula, float exponent) {
  return std::make_unique<ErrorSum>(formula, exponent);
}

std::unique_ptr<const Metric> make_log_cosh(int64_t outputs) {
  return std::make_unique<LogCosh>(outputs);
}

std::unique_ptr<const Metric> make_ranked_probability() {
  return std::make_unique<RankedProbability>();
}

}  // namespace lockstep
