#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/units.hpp"

namespace lockstep {

/// How contributions become one. `avg` on an integer type divides and drops the fraction, as real
/// backends do.
enum class Reduction : uint8_t { sum, avg, product, min, max };
std::string_view name_of(Reduction reduction);
std::optional<Reduction> reduction_named(std::string_view name);

/// When the division of `avg` happens: NCCL scales every contribution before the sum, Gloo has no
/// AVG, so the sum is divided afterwards. Integers always sum first.
enum class AverageOrder : uint8_t { scale_then_sum, sum_then_divide };

/// A flat array of numbers, true to its type: every store rounds to that type.
class Values {
 public:
  Values() = default;
  Values(DType dtype, int64_t elements);
  static Values of(DType dtype, std::span<const double> numbers);
  static Values of(DType dtype, std::initializer_list<double> numbers);

  DType dtype() const { return dtype_; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()) / size_of(dtype_); }
  Bytes byte_size() const { return Bytes(static_cast<int64_t>(bytes_.size())); }
  bool empty() const { return bytes_.empty(); }

  double number(int64_t index) const;
  int64_t integer(int64_t index) const;
  void set(int64_t index, double value);
  void set_integer(int64_t index, int64_t value);

  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// The elements [begin, begin + count); bounds are ensured.
  Values slice(int64_t begin, int64_t count) const;
  /// Copies all of `part` to [begin, begin + part.size()); same dtype and within bounds, ensured.
  void assign(int64_t begin, const Values& part);

  /// Equal bit for bit, type included.
  bool operator==(const Values& other) const = default;

 private:
  DType dtype_ = DType::fp32;
  std::vector<std::byte> bytes_;
};

/// accumulator = accumulator (+, *, min, max) contribution, element by element over the shorter of
/// the two, in the arithmetic of the accumulator's type. `avg` adds.
void accumulate(Reduction reduction, Values& accumulator, const Values& contribution);
/// values *= factor, rounded to the type (an integer is truncated towards zero).
void scale(Values& values, double factor);
/// values /= divisor; integers divide and drop the fraction.
void divide(Values& values, int64_t divisor);
struct ReductionRule {
  Reduction reduction = Reduction::sum;
  AverageOrder order = AverageOrder::scale_then_sum;
};
/// Reduces contributions in rank order: c0, then c1 added to it, and so on. `to` has the size of
/// the first, and may be one of them; a shorter one changes nothing beyond its end.
void reduce(DType dtype, const ReductionRule& rule,
            std::span<const std::span<const std::byte>> contributions, std::span<std::byte> to);
/// The same. Not empty; equal types.
Values reduce(Reduction reduction, AverageOrder order,
              std::span<const Values* const> contributions);

}  // namespace lockstep
