#pragma once

#include <cstdint>
#include <limits>
#include <numeric>

namespace lockstep {

/// Of a strategy in which no step differs from the one before by its number.
inline constexpr int64_t all_steps = std::numeric_limits<int64_t>::max();

/// How many steps from `next` on are of the same kind as the one before it, as far as is worth
/// looking: a loop that leaves steps out asks again. `kind` of a number may be any value; steps
/// count from 0.
template <class Kind>
int64_t count_alike(int64_t next, const Kind& kind) {
  constexpr int64_t most = 4096;
  int64_t alike = 0;
  while (next > 0 && alike < most && kind(next + alike) == kind(next - 1)) {
    ++alike;
  }
  return alike;
}

/// The same where something begins for good in one step: that step differs from those before, and
/// the one behind it, which finds what it made, from both.
inline int64_t steps_alike_beside(int64_t next, int64_t begins) {
  if (next > begins + 2) {
    return all_steps;
  }
  return count_alike(next, [begins](int64_t step) {
    return step < begins ? int64_t{0} : step <= begins + 1 ? 1 + step - begins : int64_t{3};
  });
}

/// Steps after which two cycles begin together again, as far as anybody looks at so many.
inline int64_t common_cycle(int64_t one, int64_t other) {
  constexpr int64_t most = int64_t{1} << 20;
  const int64_t factor = other / std::gcd(one, other);
  return one > most / factor ? most : one * factor;
}

}  // namespace lockstep
