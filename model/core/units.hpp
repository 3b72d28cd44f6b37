#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace lockstep {

/// Thrown when a quantity leaves the range of 64 bits: input asked for the impossible.
class QuantityOverflow : public std::overflow_error {
 public:
  QuantityOverflow() : std::overflow_error("a quantity does not fit in 64 bits") {}
};

__extension__ using Int128 = __int128;

constexpr int64_t narrow_to_int64(Int128 wide) {
  if (wide > std::numeric_limits<int64_t>::max() || wide < std::numeric_limits<int64_t>::min())
      [[unlikely]] {
    throw QuantityOverflow();
  }
  return static_cast<int64_t>(wide);
}

/// An exact count of one unit. Two quantities of different units do not mix; arithmetic is checked.
template <class Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t count) : count_(count) {}

  constexpr int64_t count() const { return count_; }
  static constexpr Quantity max() { return Quantity(std::numeric_limits<int64_t>::max()); }

  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) {
    if (__builtin_add_overflow(count_, other.count_, &count_)) [[unlikely]] {
      throw QuantityOverflow();
    }
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    if (__builtin_sub_overflow(count_, other.count_, &count_)) [[unlikely]] {
      throw QuantityOverflow();
    }
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, int64_t times) {
    return Quantity(narrow_to_int64(static_cast<Int128>(a.count_) * times));
  }
  friend constexpr Quantity operator*(int64_t times, Quantity a) { return a * times; }
  friend constexpr Quantity operator/(Quantity a, int64_t parts) {
    return Quantity(a.count_ / parts);
  }
  friend constexpr int64_t operator/(Quantity a, Quantity b) { return a.count_ / b.count_; }

 private:
  int64_t count_ = 0;
};

/// Picoseconds: 4 KiB over 900 GB/s is 4.5 ns, so nanoseconds would be too coarse; int64 spans 106
/// days. Used for instants (since the start of the run) and for durations.
using Time = Quantity<struct Picosecond>;
using Bytes = Quantity<struct Byte>;
/// Floating-point operations; a multiply-add is two.
using Flops = Quantity<struct FloatingPointOperation>;
using BytesPerSecond = Quantity<struct BytePerSecond>;
using FlopsPerSecond = Quantity<struct FloatingPointOperationPerSecond>;

inline constexpr int64_t picoseconds_per_second = 1'000'000'000'000;

/// Time to move `bytes` at `rate`, rounded to the nearest picosecond. `rate` must be positive.
constexpr Time operator/(Bytes bytes, BytesPerSecond rate) {
  return Time(narrow_to_int64(
      (static_cast<Int128>(bytes.count()) * picoseconds_per_second + rate.count() / 2) /
      rate.count()));
}

/// Time to compute `flops` at `rate`, rounded to the nearest picosecond. `rate` must be positive.
constexpr Time operator/(Flops flops, FlopsPerSecond rate) {
  return Time(narrow_to_int64(
      (static_cast<Int128>(flops.count()) * picoseconds_per_second + rate.count() / 2) /
      rate.count()));
}

/// Seconds as a floating-point number, for printing and ratios only: never for the simulation.
constexpr double seconds(Time time) { return static_cast<double>(time.count()) * 1e-12; }

inline namespace literals {
constexpr Time operator""_ps(unsigned long long n) { return Time(static_cast<int64_t>(n)); }
constexpr Time operator""_ns(unsigned long long n) { return Time(1'000) * static_cast<int64_t>(n); }
constexpr Time operator""_us(unsigned long long n) {
  return Time(1'000'000) * static_cast<int64_t>(n);
}
constexpr Time operator""_ms(unsigned long long n) {
  return Time(1'000'000'000) * static_cast<int64_t>(n);
}
constexpr Time operator""_s(unsigned long long n) {
  return Time(picoseconds_per_second) * static_cast<int64_t>(n);
}
constexpr Time operator""_min(unsigned long long n) { return 60_s * static_cast<int64_t>(n); }
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(1024) * static_cast<int64_t>(n);
}
constexpr Bytes operator""_MiB(unsigned long long n) { return 1024_KiB * static_cast<int64_t>(n); }
constexpr Bytes operator""_GiB(unsigned long long n) { return 1024_MiB * static_cast<int64_t>(n); }
constexpr BytesPerSecond operator""_GBps(unsigned long long n) {
  return BytesPerSecond(1'000'000'000) * static_cast<int64_t>(n);
}
constexpr FlopsPerSecond operator""_TFLOPps(unsigned long long n) {
  return FlopsPerSecond(1'000'000'000'000) * static_cast<int64_t>(n);
}
}  // namespace literals

}  // namespace lockstep
