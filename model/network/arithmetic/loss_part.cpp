#include "model/network/arithmetic/loss_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/network/arithmetic.hpp"
#include "model/network/arithmetic/loss.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

namespace {

std::vector<int64_t> whole_classes_of(const Values& targets, const ClassPart& part) {
  std::vector<int64_t> of_rows = numbers_of<int64_t>(targets);
  const int64_t classes = part.classes * part.parts;
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

int64_t rows_that_count(const std::vector<int64_t>& of_rows) {
  return std::ranges::count_if(of_rows, [](int64_t target) { return target != ignored_target; });
}

}  // namespace

void greatest_of_rows(const Values& scores, int64_t classes, Values& greatest) {
  ensure(scores.size() == greatest.size() * classes, "a row for each prediction");
  with_accumulator({&scores, &greatest}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(scores);
    std::vector<T> found(static_cast<size_t>(greatest.size()));
    for (size_t row = 0; row < found.size(); ++row) {
      const auto begin = x.begin() + static_cast<ptrdiff_t>(row) * classes;
      found[row] = *std::max_element(begin, begin + classes);
    }
    store_numbers(found, greatest);
  });
}

void loss_terms(const Values& scores, const Values& targets, const Values& greatest,
                const ClassPart& part, Values& target_scores, Values& sums) {
  ensure(scores.size() == targets.size() * part.classes, "a row for each target");
  const std::vector<int64_t> of_rows = whole_classes_of(targets, part);
  with_accumulator({&scores, &sums}, [&]<class T>(T) {
    const std::vector<T> x = numbers_of<T>(scores);
    const std::vector<T> top = numbers_of<T>(greatest);
    std::vector<T> of_target(of_rows.size());
    std::vector<T> sum(of_rows.size());
    const auto classes = static_cast<size_t>(part.classes);
    for (size_t row = 0; row < of_rows.size(); ++row) {
      for (size_t i = 0; i < classes; ++i) {
        sum[row] += std::exp(x[row * classes + i] - top[row]);
      }
      const int64_t own = of_rows[row] - part.first;
      if (own >= 0 && own < part.classes) {
        of_target[row] = x[row * classes + static_cast<size_t>(own)] - top[row];
      }
    }
    store_numbers(of_target, target_scores);
    store_numbers(sum, sums);
  });
}

void loss_of_terms(const Values& target_scores, const Values& sums, const Values& targets,
                   bool mean, Values& loss) {
  ensure(target_scores.size() == sums.size() && sums.size() == targets.size() && loss.size() == 1,
         "terms of the same rows");
  const std::vector<int64_t> of_rows = numbers_of<int64_t>(targets);
  with_accumulator({&sums, &loss}, [&]<class T>(T) {
    const std::vector<T> of_target = numbers_of<T>(target_scores);
    const std::vector<T> sum = numbers_of<T>(sums);
    T total = 0;
    for (size_t row = 0; row < of_rows.size(); ++row) {
      total += of_rows[row] == ignored_target ? T{0} : std::log(sum[row]) - of_target[row];
    }
    store_numbers<T>({mean ? total / static_cast<T>(rows_that_count(of_rows)) : total}, loss);
  });
}

void loss_part_backward(const LossPartOperands& operands, const ClassPart& part, bool mean,
                        double factor, Values& score_gradient) {
  ensure(operands.scores.size() == score_gradient.size(), "a gradient of every score");
  const std::vector<int64_t> of_rows = whole_classes_of(operands.targets, part);
  with_accumulator({&operands.scores, &score_gradient}, [&]<class T>(T) {
    std::vector<T> gradient = numbers_of<T>(operands.scores);
    const std::vector<T> top = numbers_of<T>(operands.greatest);
    const std::vector<T> sum = numbers_of<T>(operands.sums);
    const auto counted = static_cast<double>(rows_that_count(of_rows));
    const T scale = static_cast<T>(mean ? factor / counted : factor);
    const auto classes = static_cast<size_t>(part.classes);
    for (size_t row = 0; row < of_rows.size(); ++row) {
      const int64_t own = of_rows[row] - part.first;
      for (size_t i = 0; i < classes; ++i) {
        T& each = gradient[row * classes + i];
        const T probability = std::exp(each - top[row]) / sum[row];
        const T wanted = static_cast<int64_t>(i) == own ? T{1} : T{0};
        each = of_rows[row] == ignored_target ? T{0} : scale * (probability - wanted);
      }
    }
    store_numbers(gradient, score_gradient);
  });
}

}  // namespace lockstep
