#pragma once

#include <cstdint>

#include "model/core/random.hpp"

namespace lockstep::sim {

/// What has been submitted, in its order, as a polynomial of words that are random each: the part
/// between any two moments has a hash of its own, which costs one multiplication a word.
class SubmissionHistory {
 public:
  void add(uint64_t word) {
    sum_ = sum_ * factor + word;
    ++words_;
  }
  /// What was added after `before`, an earlier moment, so many times more.
  void add_again(const SubmissionHistory& before, int64_t times) {
    uint64_t words = words_ - before.words_;
    uint64_t sum = sum_ - before.sum_ * power_of(words);
    for (int64_t left = times; left > 0; left >>= 1) {  // twice as much each time
      const uint64_t power = power_of(words);
      if ((left & 1) != 0) {
        sum_ = sum_ * power + sum;
        words_ += words;
      }
      sum = sum * power + sum;
      words *= 2;
    }
  }
  /// Of what was added after `before`, an earlier moment of the same history.
  uint64_t since(const SubmissionHistory& before) const {
    const uint64_t added = words_ - before.words_;
    return random_key(sum_ - before.sum_ * power_of(added), added);
  }

 private:
  static constexpr uint64_t factor = 0xd1342543de82ef95;  // odd, so that no word is ever lost

  static uint64_t power_of(uint64_t words) {
    uint64_t power = 1;
    uint64_t square = factor;
    for (uint64_t left = words; left > 0; left >>= 1) {
      power *= (left & 1) != 0 ? square : 1;
      square *= square;
    }
    return power;
  }

  uint64_t sum_ = 0;
  uint64_t words_ = 0;
};

}  // namespace lockstep::sim
