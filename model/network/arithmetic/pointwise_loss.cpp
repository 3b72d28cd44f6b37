#include "model/network/arithmetic/pointwise_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/loss.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

constexpr double least_logarithm = -100;  // torch/nn/functional.py, binary_cross_entropy
constexpr double least_variance = 1e-12;  // ATen, binary_cross_entropy_backward

template <class T>
T value_of(const PointwiseLoss& loss, T x, T t) {
  const T threshold = static_cast<T>(loss.threshold);
  const T distance = std::abs(x - t);
  switch (loss.function) {
    case LossFunction::l1: return distance;
    case LossFunction::smooth_l1:
      return distance < threshold ? T{0.5} * distance * distance / threshold
                                  : distance - T{0.5} * threshold;
    case LossFunction::huber:
      return distance < threshold ? T{0.5} * distance * distance
                                  : threshold * (distance - T{0.5} * threshold);
    case LossFunction::bce: {
      const T least = static_cast<T>(least_logarithm);
      return (t - T{1}) * std::max(std::log1p(-x), least) - t * std::max(std::log(x), least);
    }
    case LossFunction::bce_with_logits:
      return std::max(x, T{0}) - x * t + std::log1p(std::exp(-std::abs(x)));
    case LossFunction::kl_div: return t == 0 ? T{0} : t * (std::log(t) - x);
    case LossFunction::kl_div_log: return std::exp(t) * (t - x);
  }
  return T{0};
}

template <class T>
T sign(T x) {
  return x > 0 ? T{1} : x < 0 ? T{-1} : x;
}

template <class T>
T slope_of(const PointwiseLoss& loss, T x, T t) {
  const T threshold = static_cast<T>(loss.threshold);
  const T difference = x - t;
  switch (loss.function) {
    case LossFunction::l1: return sign(difference);
    case LossFunction::smooth_l1:
      return std::abs(difference) < threshold ? difference / threshold : sign(difference);
    case LossFunction::huber:
      return std::abs(difference) < threshold ? difference : threshold * sign(difference);
    case LossFunction::bce:
      return difference / std::max((T{1} - x) * x, static_cast<T>(least_variance));
    case LossFunction::bce_with_logits: return T{1} / (T{1} + std::exp(-x)) - t;
    case LossFunction::kl_div: return -t;
    case LossFunction::kl_div_log: return -std::exp(t);
  }
  return T{0};
}

template <class T>
void refuse_no_probability(const PointwiseLoss& loss, const std::vector<T>& x) {
  if (loss.function != LossFunction::bce) {
    return;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] >= 0 && x[i] <= 1)) {
      throw ArithmeticError(
          fmt::format("BCELoss takes probabilities, but element {} of the output is {:g}", i,
                      static_cast<double>(x[i])),
          "end the network in a Sigmoid, or use BCEWithLogitsLoss");
    }
  }
}

int64_t counted_rows(const Values& targets, int64_t classes) {
  int64_t rows = 0;
  for (int64_t row = 0; row < targets.size(); ++row) {
    const int64_t target = targets.integer(row);
    if (target != ignored_target && (target < 0 || target >= classes)) {
      throw ArithmeticError(
          fmt::format("target {} of row {} is none of {} classes", target, row, classes),
          fmt::format("keep targets in 0 .. {}, or {} to ignore a row", classes - 1,
                      ignored_target));
    }
    rows += target != ignored_target ? 1 : 0;
  }
  return rows;
}

}  // namespace

void pointwise_loss_forward(const Values& input, const Values& target, const PointwiseLoss& loss,
                            Values& result) {
  ensure(input.size() == target.size() && result.size() == 1, "a loss's operands fit");
  with_accumulator({&input, &target, &result}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> t = numbers_of<T>(target);
    refuse_no_probability(loss, x);
    T sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      sum += value_of(loss, x[i], t[i]);
    }
    store_numbers<T>({sum / static_cast<T>(loss.divisor)}, result);
  });
}

void pointwise_loss_backward(const Values& input, const Values& target, const PointwiseLoss& loss,
                             double factor, Values& input_gradient) {
  ensure(input.size() == target.size() && input.size() == input_gradient.size(),
         "a loss's operands fit");
  with_accumulator({&input, &target, &input_gradient}, [&]<class T>(T) {
    std::vector<T> gradient = numbers_of<T>(input);
    const std::vector<T> t = numbers_of<T>(target);
    refuse_no_probability(loss, gradient);
    const T scale = static_cast<T>(factor / loss.divisor);
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = scale * slope_of(loss, gradient[i], t[i]);
    }
    store_numbers(gradient, input_gradient);
  });
}

void nll_forward(const Values& scores, const Values& targets, int64_t classes, bool mean,
                 Values& loss) {
  ensure(scores.size() == targets.size() * classes && loss.size() == 1, "a loss's operands fit");
  with_accumulator({&scores, &loss}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(scores);
    const T count = static_cast<T>(counted_rows(targets, classes));
    T sum = 0;
    for (int64_t row = 0; row < targets.size(); ++row) {
      const int64_t target = targets.integer(row);
      sum -= target == ignored_target ? T{0} : x[static_cast<size_t>(row * classes + target)];
    }
    store_numbers<T>({mean ? sum / count : sum}, loss);
  });
}

void nll_backward(const Values& scores, const Values& targets, int64_t classes, bool mean,
                  double factor, Values& score_gradient) {
  ensure(scores.size() == targets.size() * classes && scores.size() == score_gradient.size(),
         "a loss's operands fit");
  const double count = static_cast<double>(counted_rows(targets, classes));
  for (int64_t i = 0; i < score_gradient.size(); ++i) {
    score_gradient.set(i, 0);
  }
  for (int64_t row = 0; row < targets.size(); ++row) {
    if (targets.integer(row) != ignored_target) {
      score_gradient.set(row * classes + targets.integer(row), mean ? -factor / count : -factor);
    }
  }
}

}  // namespace lockstep
