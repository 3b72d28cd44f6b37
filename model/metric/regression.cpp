#include "model/metric/regression.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/core/numbers.hpp"
#include "model/scenario/evaluation_error.hpp"

namespace lockstep {

namespace {

float narrow(double value) { return static_cast<float>(value); }

class MeanError final : public Metric {
 public:
  MeanError(ErrorFormula formula, int64_t outputs)
      : Metric({{formula == ErrorFormula::absolute ? "sum_abs_error" : "sum_squared_error",
                 StateReduction::sum, false, zeros(DType::fp32, {outputs})},
                {"total", StateReduction::sum, false, scalar(0, DType::int64)}}),
        formula_(formula),
        outputs_(outputs) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Tensor& predictions = *inputs.predictions;
    const Tensor& target = *inputs.target;
    check_equal_shapes(predictions, target);
    if (outputs_ > 1 && (target.shape.size() != 2 || target.shape[1] != outputs_)) {
      throw OperationError(
          fmt::format("`target` has the shape {}, and of {} outputs it is "
                      "[samples, {}]",
                      text_of_shape(target.shape), outputs_, outputs_));
    }
    const std::vector<double> given = numbers_of<double>(predictions.values);
    const std::vector<double> wanted = numbers_of<double>(target.values);
    std::vector<double> sums(static_cast<size_t>(outputs_));
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double error = narrow(given[i] - wanted[i]);
      sums[i % sums.size()] +=
          formula_ == ErrorFormula::absolute ? std::abs(error) : narrow(error * error);
    }
    add_to(state[0].front(), {{outputs_}, Values::of(DType::fp32, sums)});
    add_to(state[1].front(),
           scalar(static_cast<double>(target.values.size() / outputs_), DType::int64));
  }

  Tensor compute(const MetricState& state) const override {
    Tensor result = state[0].front();
    const float total = narrow(state[1].front().values.number(0));
    for (int64_t i = 0; i < result.values.size(); ++i) {
      const float mean = narrow(result.values.number(i)) / total;
      result.values.set(i, formula_ == ErrorFormula::root_of_squared ? std::sqrt(mean) : mean);
    }
    return result;
  }

 private:
  ErrorFormula formula_;
  int64_t outputs_;
};

class R2Score final : public Metric {
 public:
  explicit R2Score(int64_t adjusted)
      : Metric({{"sum_squared_error", StateReduction::sum, false, scalar(0)},
                {"sum_error", StateReduction::sum, false, scalar(0)},
                {"residual", StateReduction::sum, false, scalar(0)},
                {"total", StateReduction::sum, false, scalar(0, DType::int64)}}),
        adjusted_(adjusted) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    check_equal_shapes(*inputs.predictions, *inputs.target);
    if (inputs.target->shape.size() != 1) {
      throw OperationError(
          fmt::format("`target` has the shape {}, and R2Score is modelled for one "
                      "output: [samples]",
                      text_of_shape(inputs.target->shape)));
    }
    double squares = 0;
    double sum = 0;
    double residual = 0;
    const std::vector<double> given = numbers_of<double>(inputs.predictions->values);
    const std::vector<double> wanted = numbers_of<double>(inputs.target->values);
    const auto samples = static_cast<int64_t>(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double error = narrow(wanted[i] - given[i]);
      squares += narrow(wanted[i] * wanted[i]);
      sum += wanted[i];
      residual += narrow(error * error);
    }
    add_to(state[0].front(), scalar(squares));
    add_to(state[1].front(), scalar(sum));
    add_to(state[2].front(), scalar(residual));
    add_to(state[3].front(), scalar(static_cast<double>(samples), DType::int64));
  }

  Tensor compute(const MetricState& state) const override {
    const int64_t samples = state[3].front().values.integer(0);
    if (samples < 2) {
      throw OperationError(fmt::format("R2Score needs at least two samples, and has {}", samples));
    }
    const float sum = narrow(state[1].front().values.number(0));
    const float mean = sum / static_cast<float>(samples);
    const float total = narrow(state[0].front().values.number(0)) - sum * mean;
    const float residual = narrow(state[2].front().values.number(0));
    constexpr float near_zero = 1e-4F;
    float score = 1;
    if (std::abs(residual) > near_zero) {
      score = std::abs(total) > near_zero ? 1 - residual / total : 0;
    }
    if (adjusted_ != 0 && adjusted_ < samples - 1) {
      score = 1 - (1 - score) * static_cast<float>(samples - 1) /
                      static_cast<float>(samples - adjusted_ - 1);
    }
    return scalar(score);
  }

 private:
  int64_t adjusted_;
};

class Perplexity final : public Metric {
 public:
  explicit Perplexity(std::optional<int64_t> ignore_index)
      : Metric({{"total_log_probs", StateReduction::sum, false, scalar(0)},
                {"count", StateReduction::sum, false, scalar(0)}}),
        ignore_index_(ignore_index) {}

  void update(const MetricInputs& inputs, MetricState& state) const override {
    const Tensor& predictions = *inputs.predictions;
    const Tensor& target = *inputs.target;
    check(predictions, target);
    const int64_t words = predictions.shape.back();
    double total = 0;
    int64_t count = 0;
    for (int64_t token = 0; token < target.values.size(); ++token) {
      const int64_t word = target.values.integer(token);
      if (ignore_index_ && word == *ignore_index_) {
        continue;
      }
      if (word < 0 || word >= words) {
        throw OperationError(
            fmt::format("`target` holds the word {} of a vocabulary of {}", word, words),
            "give words from 0, or name the one to ignore by `ignore_index`");
      }
      total -= log_probability(predictions.values, token * words, words, word);
      ++count;
    }
    add_to(state[0].front(), scalar(total));
    add_to(state[1].front(), scalar(static_cast<double>(count)));
  }

  Tensor compute(const MetricState& state) const override {
    return scalar(std::exp(narrow(state[0].front().values.number(0)) /
                           narrow(state[1].front().values.number(0))));
  }

 private:
  static void check(const Tensor& predictions, const Tensor& target) {
    std::vector<int64_t> tokens = predictions.shape;
    if (!tokens.empty()) {
      tokens.pop_back();
    }
    if (predictions.shape.size() != 3 || tokens != target.shape) {
      throw OperationError(
          fmt::format("`preds` has the shape {} and `target` {}: they are [batch, tokens, "
                      "vocabulary] and [batch, tokens]",
                      text_of_shape(predictions.shape), text_of_shape(target.shape)),
          "of a batch of single tokens: preds: \"[score]\", target: \"[target]\"");
    }
    if (!is_floating(predictions.values.dtype()) || is_floating(target.values.dtype())) {
      throw OperationError("`preds` are logits and `target` words",
                           "give floats and whole numbers");
    }
  }

  static double log_probability(const Values& logits, int64_t begin, int64_t words, int64_t word) {
    double greatest = logits.number(begin);
    for (int64_t w = 1; w < words; ++w) {
      greatest = std::max(greatest, logits.number(begin + w));
    }
    double sum = 0;
    for (int64_t w = 0; w < words; ++w) {
      sum += std::exp(logits.number(begin + w) - greatest);
    }
    const float probability = narrow(std::exp(logits.number(begin + word) - greatest) / sum);
    return narrow(std::log(probability));
  }

  std::optional<int64_t> ignore_index_;
};

}  // namespace

std::unique_ptr<const Metric> make_mean_error(ErrorFormula formula, int64_t outputs) {
  return std::make_unique<MeanError>(formula, outputs);
}

std::unique_ptr<const Metric> make_r2_score(int64_t adjusted) {
  return std::make_unique<R2Score>(adjusted);
}

std::unique_ptr<const Metric> make_perplexity(std::optional<int64_t> ignore_index) {
  return std::make_unique<Perplexity>(ignore_index);
}

}  // namespace lockstep
