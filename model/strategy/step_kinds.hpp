#pragma once

#include <cstdint>
#include <numeric>

namespace lockstep {

// What a strategy says of steps to come, by its own counting, as numbers: equal ones mean that
// steps do the same. Steps are counted from 0.

/// Of a step where something begins for good in the step `begins`: that step differs from those
/// before, and the one behind it, which finds what it made, from both.
inline int64_t kind_beside(int64_t step, int64_t begins) {
  return step < begins ? 0 : step <= begins + 1 ? 1 + step - begins : 3;
}

/// The same of all steps from one on: negative until they are alike.
inline int64_t place_beside(int64_t step, int64_t begins) {
  return step <= begins + 1 ? step - begins - 2 : 0;
}

/// Steps after which two cycles begin together again, as far as anybody looks at so many.
inline int64_t common_cycle(int64_t one, int64_t other) {
  constexpr int64_t most = int64_t{1} << 20;
  const int64_t factor = other / std::gcd(one, other);
  return one > most / factor ? most : one * factor;
}

}  // namespace lockstep
