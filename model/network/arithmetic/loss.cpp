#include "model/network/arithmetic/loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

/// The class of each row, or `ignored_target`.
std::vector<int64_t> classes_of(const Values& targets, int64_t classes) {
  std::vector<int64_t> of_rows = numbers_of<int64_t>(targets);
  for (size_t row = 0; row < of_rows.size(); ++row) {
    const int64_t target = of_rows[row];
    if (target != ignored_target && (target < 0 || target >= classes)) {
      throw ArithmeticError(
          fmt::format("target {} of row {} is none of {} classes", target, row, classes),
          fmt::format("keep targets in 0 .. {}, or {} to ignore a row", classes - 1,
                      ignored_target));
    }
  }
  return of_rows;
}

int64_t counted_rows(const std::vector<int64_t>& of_rows) {
  return std::count_if(of_rows.begin(), of_rows.end(),
                       [](int64_t target) { return target != ignored_target; });
}

/// `shifted` becomes the scores of one row minus their maximum: the exponentials then neither
/// overflow nor all vanish.
template <class T>
void shift_row(const std::vector<T>& scores, size_t row, std::vector<T>& shifted) {
  const auto begin = scores.begin() + static_cast<ptrdiff_t>(row * shifted.size());
  std::copy_n(begin, shifted.size(), shifted.begin());
  const T greatest = *std::max_element(shifted.begin(), shifted.end());
  for (T& score : shifted) {
    score -= greatest;
  }
}

template <class T>
T sum_of_exponentials(const std::vector<T>& shifted) {
  T sum = 0;
  for (const T score : shifted) {
    sum += std::exp(score);
  }
  return sum;
}

}  // namespace

void mse_forward(const Values& input, const Values& target, LossReduction reduction, Values& loss) {
  ensure(input.size() == target.size() && loss.size() == 1, "a loss's operands fit");
  with_accumulator({&input, &target, &loss}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(input);
    const std::vector<T> goal = numbers_of<T>(target);
    T sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      sum += (x[i] - goal[i]) * (x[i] - goal[i]);
    }
    store_numbers<T>({reduction == LossReduction::mean ? sum / static_cast<T>(x.size()) : sum},
                     loss);
  });
}

void mse_backward(const Values& input, const Values& target, LossReduction reduction, double factor,
                  Values& input_gradient) {
  ensure(input.size() == target.size() && input.size() == input_gradient.size(),
         "a loss's operands fit");
  with_accumulator({&input, &target, &input_gradient}, [&]<class T>(T) {
    std::vector<T> gradient = numbers_of<T>(input);
    const std::vector<T> goal = numbers_of<T>(target);
    const double count = static_cast<double>(gradient.size());
    const T scale =
        static_cast<T>(reduction == LossReduction::mean ? 2 * factor / count : 2 * factor);
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = scale * (gradient[i] - goal[i]);
    }
    store_numbers(gradient, input_gradient);
  });
}

void cross_entropy_forward(const Values& scores, const Values& targets, int64_t classes,
                           LossReduction reduction, Values& loss) {
  ensure(scores.size() == targets.size() * classes && loss.size() == 1, "a loss's operands fit");
  with_accumulator({&scores, &loss}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(scores);
    const std::vector<int64_t> of_rows = classes_of(targets, classes);
    std::vector<T> shifted(static_cast<size_t>(classes));
    T sum = 0;
    for (size_t row = 0; row < of_rows.size(); ++row) {
      if (of_rows[row] != ignored_target) {
        shift_row(x, row, shifted);
        sum += std::log(sum_of_exponentials(shifted)) - shifted[static_cast<size_t>(of_rows[row])];
      }
    }
    const T count = static_cast<T>(counted_rows(of_rows));
    store_numbers<T>({reduction == LossReduction::mean ? sum / count : sum}, loss);
  });
}

void cross_entropy_backward(const Values& scores, const Values& targets, int64_t classes,
                            LossReduction reduction, double factor, Values& score_gradient) {
  ensure(scores.size() == targets.size() * classes && scores.size() == score_gradient.size(),
         "a loss's operands fit");
  with_accumulator({&scores, &score_gradient}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(scores);
    const std::vector<int64_t> of_rows = classes_of(targets, classes);
    std::vector<T> shifted(static_cast<size_t>(classes));
    std::vector<T> gradient(x.size());
    const double count = static_cast<double>(counted_rows(of_rows));
    const T scale = static_cast<T>(reduction == LossReduction::mean ? factor / count : factor);
    for (size_t row = 0; row < of_rows.size(); ++row) {
      if (of_rows[row] == ignored_target) {
        continue;
      }
      shift_row(x, row, shifted);
      const T sum = sum_of_exponentials(shifted);
      for (size_t i = 0; i < shifted.size(); ++i) {
        const T probability = std::exp(shifted[i]) / sum;
        gradient[row * shifted.size() + i] =
            scale * (probability - (static_cast<int64_t>(i) == of_rows[row] ? T{1} : T{0}));
      }
    }
    store_numbers(gradient, score_gradient);
  });
}

}  // namespace lockstep
