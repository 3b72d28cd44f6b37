#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// "4", "2 or 4", "1, 2 or 4".
std::string one_of_numbers(const std::vector<int64_t>& numbers);

/// The multiples of `step` on both sides of `number`, as an error offers them: "8 or 12" of 4 and
/// 10. The one below only where it is above 0.
std::string nearest_multiples(int64_t number, int64_t step);

/// All divisors of a small number; of one with many divisors those next to `wanted`. None is below
/// `least`.
std::string divisors_of(int64_t number, int64_t wanted, int64_t least = 1);

}  // namespace lockstep
