#include "model/core/nearest_sizes.hpp"

#include <algorithm>

namespace lockstep {

namespace {

std::vector<int64_t> divisors_from(int64_t number, int64_t least) {
  std::vector<int64_t> divisors;
  for (int64_t low = 1; low <= number / low; ++low) {
    if (number % low != 0) {
      continue;
    }
    divisors.push_back(low);
    if (low != number / low) {
      divisors.push_back(number / low);
    }
  }
  std::ranges::sort(divisors);
  std::erase_if(divisors, [least](int64_t divisor) { return divisor < least; });
  return divisors;
}

std::vector<int64_t> next_to(const std::vector<int64_t>& sorted, int64_t wanted) {
  const auto above = std::ranges::upper_bound(sorted, wanted);
  std::vector<int64_t> nearest;
  if (above != sorted.begin()) {
    nearest.push_back(*(above - 1));
  }
  if (above != sorted.end()) {
    nearest.push_back(*above);
  }
  return nearest;
}

}  // namespace

std::string one_of_numbers(const std::vector<int64_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool is_last = i + 1 == numbers.size();
    text += i == 0 ? "" : is_last ? " or " : ", ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

std::string nearest_multiples(int64_t number, int64_t step) {
  const int64_t below = number / step * step;
  std::vector<int64_t> multiples;
  if (below > 0) {
    multiples.push_back(below);
  }
  if (below != number || below == 0) {
    multiples.push_back(below + step);
  }
  return one_of_numbers(multiples);
}

std::string divisors_of(int64_t number, int64_t wanted, int64_t least) {
  constexpr size_t few = 4;
  const std::vector<int64_t> divisors = divisors_from(number, least);
  return one_of_numbers(divisors.size() <= few ? divisors : next_to(divisors, wanted));
}

}  // namespace lockstep
