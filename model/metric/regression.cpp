#include "model/metric/regression.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <cmath>

#include "model/core/numbers.hpp"
#include "model/expression/evaluation_error.hpp"
#include "model/metric/sample_columns.hpp"

namespace lockstep {

namespace {

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

std::unique_ptr<const Metric> make_perplexity(std::optional<int64_t> ignore_index) {
  return std::make_unique<Perplexity>(ignore_index);
}

}  // namespace lockstep
