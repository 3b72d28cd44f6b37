#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "model/core/values.hpp"
#include "model/network/arithmetic/numbers.hpp"

namespace lockstep {

/// A tensor of the reference arithmetic, with the operations that updates are written in: each is
/// one function of torch (in brackets), computed in T element by element. LibTorch has the same
/// interface over its own tensors, so that an update is written once.
template <class T>
class ReferenceNumbers {
 public:
  explicit ReferenceNumbers(std::vector<T> numbers, double epsilon = 0)
      : numbers_(std::move(numbers)), epsilon_(epsilon) {}
  const std::vector<T>& numbers() const { return numbers_; }
  int64_t elements() const { return std::ssize(numbers_); }

  ReferenceNumbers clone() const { return *this; }
  void copy(const ReferenceNumbers& other) { numbers_ = other.numbers_; }
  void negate() {
    each([](T x) { return -x; });
  }  // neg_
  void scale(double factor) {
    each([f = T(factor)](T x) { return x * f; });
  }  // mul_
  void divide(double by) {
    each([b = T(by)](T x) { return x / b; });
  }  // div_
  void raise(double term) {
    each([t = T(term)](T x) { return x + t; });
  }  // add_
  void root() {
    each([](T x) { return std::sqrt(x); });
  }  // sqrt_
  void inverse_root() {
    each([](T x) { return T(1) / std::sqrt(x); });
  }  // rsqrt_
  void divide_into(double number) {
    each([n = T(number)](T x) { return n / x; });
  }
  void absolute() {
    each([](T x) { return std::abs(x); });
  }  // abs_
  void sign() {
    each([](T x) { return T(x > 0) - T(x < 0); });
  }                                // sign_
  void keep_above(double least) {  // clamp_
    each([l = T(least)](T x) { return x < l ? l : x; });
  }
  void keep_below(double most) {
    each([m = T(most)](T x) { return x > m ? m : x; });
  }  // clamp_

  void add(const ReferenceNumbers& a, double factor = 1) {  // add_
    with(a, [f = T(factor)](T x, T y) { return x + f * y; });
  }
  void multiply(const ReferenceNumbers& a) {
    with(a, [](T x, T y) { return x * y; });
  }  // mul_
  void divide(const ReferenceNumbers& a) {
    with(a, [](T x, T y) { return x / y; });
  }                                              // div_
  void keep_larger(const ReferenceNumbers& a) {  // maximum
    with(a, [](T x, T y) { return x < y ? y : x; });
  }
  void approach(const ReferenceNumbers& end, double weight) {  // lerp_
    with(end, [w = T(weight)](T x, T y) {
      return w < T(0.5) ? x + w * (y - x) : y - (y - x) * (T(1) - w);
    });
  }
  /// What is positive, negative and zero becomes these.
  void choose_by_sign(double positive, double negative, double zero) {
    each([p = T(positive), n = T(negative), z = T(zero)](T x) {
      return x > 0 ? p : x < 0 ? n : z;
    });
  }
  /// Zero where the other has this number.
  void drop_where(const ReferenceNumbers& other, double number) {
    with(other, [n = T(number)](T x, T y) { return y == n ? T(0) : x; });
  }
  void add_product(const ReferenceNumbers& a, const ReferenceNumbers& b,
                   double factor) {  // addcmul_
    for (size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i] += T(factor) * a.numbers_[i] * b.numbers_[i];
    }
  }
  void add_quotient(const ReferenceNumbers& a, const ReferenceNumbers& b,
                    double factor) {  // addcdiv_
    for (size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i] += T(factor) * (a.numbers_[i] / b.numbers_[i]);
    }
  }

  // Of matrices one after the other, of so many rows and columns each.
  /// The mean of the squares of each row, or of each column (norm, square_, div_).
  ReferenceNumbers mean_squares(int64_t rows, int64_t columns, bool of_rows) const {
    const auto matrix = rows * columns;
    const int64_t count = of_rows ? rows : columns;
    const int64_t length = of_rows ? columns : rows;
    std::vector<T> means;
    for (int64_t begin = 0; begin < elements(); begin += matrix) {
      for (int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < length; ++j) {
          const int64_t at = begin + (of_rows ? i * columns + j : j * columns + i);
          const auto number = static_cast<double>(numbers_[static_cast<size_t>(at)]);
          sum += number * number;
        }
        const T norm = static_cast<T>(std::sqrt(sum));
        means.push_back(norm * norm / static_cast<T>(length));
      }
    }
    return ReferenceNumbers(std::move(means));
  }
  /// The product of a column of so many rows and a row, over the mean of the column, which is at
  /// least so large (matmul, mean, clamp_, div_).
  static ReferenceNumbers scaled_product(const ReferenceNumbers& column,
                                         const ReferenceNumbers& row, int64_t rows, int64_t columns,
                                         double least) {
    std::vector<T> product;
    const int64_t matrices = column.elements() / rows;
    for (int64_t matrix = 0; matrix < matrices; ++matrix) {
      const T* const down = column.numbers_.data() + matrix * rows;
      const T* const across = row.numbers_.data() + matrix * columns;
      double sum = 0;
      for (int64_t i = 0; i < rows; ++i) {
        sum += static_cast<double>(down[i]);
      }
      const T mean =
          std::max(static_cast<T>(sum / static_cast<double>(rows)), static_cast<T>(least));
      for (int64_t i = 0; i < rows * columns; ++i) {
        product.push_back(down[i / columns] * across[i % columns] / mean);
      }
    }
    return ReferenceNumbers(std::move(product));
  }
  /// Of the type that stores it: torch.finfo(dtype).eps.
  double epsilon() const { return epsilon_; }

  /// The root of the sum of squares.
  double norm() const {
    double sum = 0;
    for (const T number : numbers_) {
      sum += static_cast<double>(number) * static_cast<double>(number);
    }
    return static_cast<double>(static_cast<T>(std::sqrt(sum)));
  }

 private:
  template <class Change>
  void each(Change change) {
    for (T& number : numbers_) {
      number = change(number);
    }
  }
  template <class Change>
  void with(const ReferenceNumbers& other, Change change) {
    ensure(other.numbers_.size() == numbers_.size(), "operands have one size");
    for (size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i] = change(numbers_[i], other.numbers_[i]);
    }
  }

  std::vector<T> numbers_;
  double epsilon_ = 0;
};

}  // namespace lockstep
