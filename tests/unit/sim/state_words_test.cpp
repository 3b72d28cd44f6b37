#include "sim/state_words.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <vector>

using lockstep::sim::StateWords;

namespace state_words_test {

namespace {

// Numbers, with the ends of lists among them.
struct Item {
  int64_t number = 0;
  bool ends_list = false;
};

StateWords words_of(const std::vector<Item>& items) {
  StateWords words;
  for (const Item& item : items) {
    if (item.ends_list) {
      words.end_list();
    } else {
      words.add(item.number);
    }
  }
  return words;
}

}  // namespace

TEST_CASE("words are equal where all numbers and all ends of lists are") {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t greatest = std::numeric_limits<int64_t>::max();
  // Around each number of bits that a byte more begins with, and the greatest of either sign.
  std::vector<std::vector<Item>> different{{}, {{0, true}}, {{0}}, {{0}, {0}}, {{0}, {0, true}}};
  for (int bits = 0; bits < 63; ++bits) {
    different.push_back({{int64_t{1} << bits}});
    different.push_back({{-(int64_t{1} << bits)}});
    different.push_back({{int64_t{1} << bits}, {0, true}});
  }
  different.push_back({{least}});
  different.push_back({{greatest}});
  different.push_back({{64, false}, {0, true}, {64, false}});
  different.push_back({{64, false}, {64, false}, {0, true}});
  for (size_t left = 0; left < different.size(); ++left) {
    for (size_t right = 0; right < different.size(); ++right) {
      CHECK((words_of(different[left]) == words_of(different[right])) == (left == right));
    }
  }
}

TEST_CASE("words that are cleared are as new") {
  StateWords words;
  CHECK(words.empty());
  words.add(5);
  CHECK_FALSE(words.empty());
  words.clear();
  CHECK(words.empty());
  CHECK(words == StateWords());
}

}  // namespace state_words_test
