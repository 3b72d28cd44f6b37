#pragma once

#include <cstdint>

namespace lockstep {

/// Counter-based random numbers: a pure function of a key and a counter, so that no draw disturbs
/// another and the same place gives the same number in every world, order and thread.
/// SplitMix64's finaliser (Steele, Lea, Flood 2014) over key and counter.
constexpr uint64_t random_bits(uint64_t key, uint64_t counter) {
  uint64_t mixed = key + 0x9e3779b97f4a7c15ULL * (counter + 1);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

/// A key for one more level: random_bits(random_key(random_key(seed, rank), site), turn).
constexpr uint64_t random_key(uint64_t key, uint64_t part) { return random_bits(key, part); }

/// Uniform in [0, 1), 53 bits.
constexpr double random_unit(uint64_t key, uint64_t counter) {
  return static_cast<double>(random_bits(key, counter) >> 11) * 0x1.0p-53;
}

/// Uniform in [0, bound); bound > 0. Multiply-shift; the bias is below bound / 2^64.
constexpr uint64_t random_below(uint64_t key, uint64_t counter, uint64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(random_bits(key, counter)) * bound) >> 64);
}

}  // namespace lockstep
