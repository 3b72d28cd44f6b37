#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "model/expression/evaluation_error.hpp"
#include "model/metric/regression.hpp"
#include "model/metric/sample_columns.hpp"

namespace lockstep {

namespace {

constexpr std::array<const char*, 8> state_names = {
    "mean_x", "mean_y", "max_abs_dev_x", "max_abs_dev_y", "var_x", "var_y", "corr_xy", "n_total"};

std::vector<MetricStateSpec> pearson_states(int64_t outputs) {
  std::vector<MetricStateSpec> states;
  for (const char* name : state_names) {
    states.push_back({name, StateReduction::none, false, zeros(DType::fp32, {outputs})});
  }
  return states;
}

/// What one rank knows of one output: fp32, as the states are.
struct Moments {
  float mean_x = 0, mean_y = 0, deviation_x = 0, deviation_y = 0;
  float variance_x = 0, variance_y = 0, covariance = 0, count = 0;
};

Moments moments_at(const MetricState& state, int64_t i) {
  const auto at = [&](size_t which) { return narrow(state[which].front().values.number(i)); };
  return {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
}

void set_moments(const Moments& moments, int64_t i, MetricState& state) {
  const std::array<float, 8> numbers = {
      moments.mean_x,     moments.mean_y,     moments.deviation_x, moments.deviation_y,
      moments.variance_x, moments.variance_y, moments.covariance,  moments.count};
  for (size_t which = 0; which < numbers.size(); ++which) {
    state[which].front().values.set(i, numbers[which]);
  }
}

/// The samples of one output.
struct ColumnState {
  std::vector<double> x;
  std::vector<double> y;
};

float mean_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) {
    sum += number;
  }
  return narrow(sum / static_cast<double>(numbers.size()));
}

float greatest_deviation(const std::vector<double>& numbers, float mean, float known) {
  float greatest = known;
  for (const double number : numbers) {
    greatest = std::max(greatest, std::abs(narrow(number - mean)));
  }
  return greatest;
}

Moments with_batch(const Moments& old, const ColumnState& batch) {
  const auto samples = static_cast<float>(batch.x.size());
  const float mean_x = mean_of(batch.x);
  const float mean_y = mean_of(batch.y);
  const float delta_x = mean_x - old.mean_x;
  const float delta_y = mean_y - old.mean_y;
  Moments made = old;
  made.count = old.count + samples;
  made.mean_x = old.mean_x + delta_x * samples / made.count;
  made.mean_y = old.mean_y + delta_y * samples / made.count;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (size_t i = 0; i < batch.x.size(); ++i) {
    const double x = narrow(batch.x[i] - mean_x);
    const double y = narrow(batch.y[i] - mean_y);
    xx += x * x;
    yy += y * y;
    xy += x * y;
  }
  const float correction = old.count * samples / made.count;
  made.variance_x = old.variance_x + narrow(xx) + delta_x * delta_x * correction;
  made.variance_y = old.variance_y + narrow(yy) + delta_y * delta_y * correction;
  made.covariance = old.covariance + narrow(xy) + delta_x * delta_y * correction;
  made.deviation_x = greatest_deviation(batch.x, made.mean_x, old.deviation_x);
  made.deviation_y = greatest_deviation(batch.y, made.mean_y, old.deviation_y);
  return made;
}

Moments merged_moments(const Moments& a, const Moments& b) {
  constexpr float nearly_nothing = 1e-10F;
  Moments both;
  both.count = a.count != 0 || b.count != 0 ? a.count + b.count : nearly_nothing;
  both.mean_x = (a.count * a.mean_x + b.count * b.mean_x) / both.count;
  both.mean_y = (a.count * a.mean_y + b.count * b.mean_y) / both.count;
  const float weight = a.count * b.count / both.count;
  const float delta_x = b.mean_x - a.mean_x;
  const float delta_y = b.mean_y - a.mean_y;
  both.variance_x = a.variance_x + b.variance_x + weight * delta_x * delta_x;
  both.variance_y = a.variance_y + b.variance_y + weight * delta_y * delta_y;
  both.covariance = a.covariance + b.covariance + weight * delta_x * delta_y;
  both.deviation_x = std::max(a.deviation_x, b.deviation_x);
  both.deviation_y = std::max(a.deviation_y, b.deviation_y);
  return both;
}

// Variances are scaled by the largest deviation; below the root of fp32's epsilon there is none.
float correlation(const Moments& moments) {
  const float count = moments.count - 1;
  const float x = moments.variance_x / count / (moments.deviation_x * moments.deviation_x);
  const float y = moments.variance_y / count / (moments.deviation_y * moments.deviation_y);
  const float xy = moments.covariance / count / (moments.deviation_x * moments.deviation_y);
  const float bound = std::sqrt(std::numeric_limits<float>::epsilon());
  if (x < bound || y < bound || !std::isfinite(x) || !std::isfinite(y) || !std::isfinite(xy)) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  return std::clamp(xy / std::sqrt(x * y), -1.0F, 1.0F);
}

// Lin 1989.
float concordance(const Moments& moments) {
  const float x = moments.variance_x / (moments.count - 1);
  const float y = moments.variance_y / (moments.count - 1);
  const float apart = moments.mean_x - moments.mean_y;
  return 2 * correlation(moments) * std::sqrt(x) * std::sqrt(y) / (x + y + apart * apart);
}

class Pearson final : public Metric {
 public:
  Pearson(CorrelationFormula formula, int64_t outputs)
      : Metric(pearson_states(outputs)), formula_(formula), outputs_(outputs) {}

  bool full_state_update() const override { return true; }

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Tensor& target = *inputs.target;
    check_equal_shapes(*inputs.predictions, target);
    const bool fits = outputs_ == 1 ? target.shape.size() == 1
                                    : target.shape.size() == 2 && target.shape[1] == outputs_;
    if (!fits || target.values.empty()) {
      throw OperationError(fmt::format(
          "`target` has the shape {}, and {} is expected", text_of_shape(target.shape),
          outputs_ == 1 ? std::string("[samples]") : fmt::format("[samples, {}]", outputs_)));
    }
    for (int64_t output = 0; output < outputs_; ++output) {
      ColumnState column;
      for (int64_t i = output; i < target.values.size(); i += outputs_) {
        column.x.push_back(inputs.predictions->values.number(i));
        column.y.push_back(target.values.number(i));
      }
      set_moments(with_batch(moments_at(state, output), column), output, state);
    }
  }

  Tensor compute(const MetricState& state) const override {
    const int64_t ranks = state.front().front().values.size() / outputs_;
    std::vector<float> results;
    for (int64_t output = 0; output < outputs_; ++output) {
      Moments all = moments_at(state, output);
      for (int64_t rank = 1; rank < ranks; ++rank) {
        all = merged_moments(all, moments_at(state, rank * outputs_ + output));
      }
      results.push_back(formula_ == CorrelationFormula::pearson ? correlation(all)
                                                                : concordance(all));
    }
    return outputs_ == 1 ? scalar(results.front()) : floats({outputs_}, results);
  }

 private:
  CorrelationFormula formula_;
  int64_t outputs_;
};

}  // namespace

std::unique_ptr<const Metric> make_correlation(CorrelationFormula formula, int64_t outputs) {
  return std::make_unique<Pearson>(formula, outputs);
}

}  // namespace lockstep
