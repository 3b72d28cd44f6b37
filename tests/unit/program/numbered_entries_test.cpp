#include "model/program/numbered_entries.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

using namespace lockstep;

namespace numbered_entries_test {

namespace {

struct Thing {
  int64_t content = 7;
  std::shared_ptr<int> shared;
};

}  // namespace

TEST_CASE("numbered entries are found as in a map, each where it was put") {
  std::mt19937 random(3);
  NumberedEntries<Thing> entries;
  std::map<uint32_t, std::pair<Thing*, int64_t>> expected;
  uint32_t number = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    // Numbers are given in order, now and then with a gap; what goes is drawn.
    if (random() % 5 < 3 || expected.empty()) {
      number += random() % 97 == 0 ? 200 : 1;
      CHECK(entries.find(number) == nullptr);
      Thing& fresh = entries.add(number);
      CHECK(fresh.content == 7);
      CHECK(fresh.shared == nullptr);
      fresh.content = turn;
      expected[number] = {&fresh, turn};
    } else {
      const auto gone =
          std::next(expected.begin(), static_cast<int64_t>(random() % expected.size()));
      entries.erase(gone->first);
      CHECK(entries.find(gone->first) == nullptr);
      expected.erase(gone);
    }
    CHECK(entries.size() == expected.size());
  }
  for (uint32_t at = 0; at <= number + 1'000; ++at) {
    const auto known = expected.find(at);
    Thing* const found = entries.find(at);
    CHECK(found == (known == expected.end() ? nullptr : known->second.first));
    CHECK((found == nullptr || found->content == known->second.second));
  }
}

TEST_CASE("numbered entries end when they are erased, or with all of them") {
  const auto shared = std::make_shared<int>(1);
  {
    NumberedEntries<Thing> entries;
    for (uint32_t number = 1; number <= 100; ++number) {
      entries.add(number).shared = shared;
    }
    CHECK(shared.use_count() == 101);
    for (uint32_t number = 1; number <= 70; ++number) {
      entries.erase(number);
    }
    CHECK(shared.use_count() == 31);
  }
  CHECK(shared.use_count() == 1);
}

}  // namespace numbered_entries_test
