#pragma once

#include <cstring>
#include <initializer_list>
#include <vector>

#include "model/core/ensure.hpp"
#include "model/core/numbers.hpp"
#include "model/core/values.hpp"

namespace lockstep {

/// Stores every number, rounded once to the type of `values`.
template <class T>
void store_numbers(const std::vector<T>& numbers, Values& values) {
  ensure(static_cast<int64_t>(numbers.size()) == values.size(), "a result fills its buffer");
  const bool same_type = values.dtype() == (sizeof(T) == 8 ? DType::fp64 : DType::fp32);
  if (same_type && !numbers.empty()) {
    std::memcpy(values.bytes().data(), numbers.data(), values.bytes().size());
    return;
  }
  for (int64_t i = 0; i < values.size(); ++i) {
    values.set(i, static_cast<double>(numbers[static_cast<size_t>(i)]));
  }
}

/// gradient += addition. The addition is rounded to the gradient's type before, the sum after: a
/// framework makes the new gradient first and accumulates it then.
template <class T>
void accumulate_numbers(const std::vector<T>& addition, Values& gradient) {
  Values rounded(gradient.dtype(), static_cast<int64_t>(addition.size()));
  store_numbers(addition, rounded);
  ensure(rounded.size() == gradient.size(), "a gradient has its parameter's size");
  accumulate(Reduction::sum, gradient, rounded);
}

/// Calls `compute` with a zero of the type that sums are formed in: double as soon as one operand
/// is fp64, else float, 16 bit included.
template <class Compute>
void with_accumulator(std::initializer_list<const Values*> operands, Compute compute) {
  bool is_double = false;
  for (const Values* operand : operands) {
    is_double = is_double || (operand != nullptr && operand->dtype() == DType::fp64);
  }
  if (is_double) {
    compute(double{});
  } else {
    compute(float{});
  }
}

}  // namespace lockstep
