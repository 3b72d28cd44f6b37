#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace lockstep {

// Stretches of rows of numbers, for arithmetic that goes from vector to vector.

/// Sum of the products of `width` numbers from `at_a` of `a` and from `at_b` of `b`.
template <class T>
T dot(const std::vector<T>& a, size_t at_a, const std::vector<T>& b, size_t at_b, int64_t width) {
  T sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
    sum += a[at_a + i] * b[at_b + i];
  }
  return sum;
}

/// to += factor * from
template <class T>
void add_multiple(T factor, const std::vector<T>& from, size_t at_from, std::vector<T>& to,
                  size_t at_to, int64_t width) {
  for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
    to[at_to + i] += factor * from[at_from + i];
  }
}

/// Scores become probabilities.
template <class T>
void softmax_in_place(std::vector<T>& scores) {
  const T greatest = *std::max_element(scores.begin(), scores.end());
  T sum = 0;
  for (T& score : scores) {
    score = std::exp(score - greatest);
    sum += score;
  }
  for (T& score : scores) {
    score /= sum;
  }
}

}  // namespace lockstep
