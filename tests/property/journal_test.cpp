// A journal that spills is asked what one is asked that stays in memory.
#include <fmt/core.h>
#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "model/core/random.hpp"
#include "model/program/journal.hpp"
#include "tests/property/held.hpp"
#include "tests/unit/program/memory_store.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace journal_test {

namespace {

constexpr size_t lanes = 2;

// What follows from a key alone, so that two journals can be given the same.
Row row_of_key(uint64_t key) {
  Row row;
  row.bytes = static_cast<int64_t>(key);
  row.peer = static_cast<int32_t>(key % 1000);
  return row;
}

Completion completion_of_key(uint64_t key) {
  return {Time(static_cast<int64_t>(key % 1'000'003)), Time(1), Time(2),
          key % 20'000 == 0 ? Outcome::pending : Outcome::ok,
          RankId{static_cast<uint32_t>(key % 5)}};
}

struct Lists {
  explicit Lists(uint64_t key)
      : after(key % 4, Ticket{static_cast<uint32_t>(key % 99 + 1), LaneId{0}}),
        reads(key / 4 % 3, Slice{BufferId{1}, DType::fp32, static_cast<int64_t>(key % 11), 3}),
        splits(key % 500 == 0 ? key % 40'000 : key % 3, static_cast<int64_t>(key)) {}
  OpLists views() const { return {after, reads, {}, splits, {}}; }
  std::vector<Ticket> after;
  std::vector<Slice> reads;
  std::vector<int64_t> splits;
};

/// One lane of the two journals, given the same and asked the same.
class Pair {
 public:
  Pair(LaneJournal& resident, LaneJournal& spilled) : resident_(resident), spilled_(spilled) {}

  void append(uint64_t key, int count) {
    for (int number = 0; number < count; ++number) {
      const uint64_t own = random_key(key, static_cast<uint64_t>(number));
      Row row = row_of_key(own);
      const Lists lists(own);
      row.lists = resident_.append_lists(lists.views());
      RC_ASSERT(spilled_.append_lists(lists.views()) == row.lists);
      resident_.append(row);
      spilled_.append(row);
    }
  }
  // The next tickets, a little out of order, and some of them again.
  void complete(uint64_t key, int count) {
    for (int number = 0; number < count; ++number) {
      const uint64_t own = random_key(key, static_cast<uint64_t>(number));
      const auto back = static_cast<uint32_t>(own % 50 == 0 ? own % 9000 : 0);
      tickets_ += back == 0 ? 1 : 0;
      const uint32_t sequence = tickets_ > back ? tickets_ - back : 1;
      resident_.complete(sequence, completion_of_key(own));
      spilled_.complete(sequence, completion_of_key(own));
    }
  }
  void truncate(uint64_t key) {
    const int64_t size = resident_.size() - static_cast<int64_t>(key % 9000);
    resident_.truncate(std::max<int64_t>(0, size));
    spilled_.truncate(std::max<int64_t>(0, size));
  }
  void ask(uint64_t key) const {
    RC_ASSERT(resident_.size() == spilled_.size());
    if (resident_.size() > 0) {
      ask_row(static_cast<int64_t>(key % static_cast<uint64_t>(resident_.size())));
    }
    ask_completion(static_cast<uint32_t>(key % (tickets_ + 10)));
  }
  void ask_all() const {
    int64_t index = 0;
    RowCursor cursor(spilled_);
    spilled_.for_each([&](const Row& row) {
      RC_ASSERT(row == resident_.row(index++));
      RC_ASSERT(row == cursor.next());
    });
    RC_ASSERT(index == resident_.size());
    for (index = 0; index < resident_.size(); ++index) {
      ask_row(index);
    }
    for (uint32_t sequence = 0; sequence < tickets_ + 10; ++sequence) {
      ask_completion(sequence);
    }
  }

 private:
  template <class Element>
  static bool same(std::span<const Element> left, std::span<const Element> right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end());
  }
  void ask_row(int64_t index) const {
    const Row row = resident_.row(index);
    RC_ASSERT(row == spilled_.row(index));
    const RowLists expected = resident_.lists_of(row);
    const RowLists found = spilled_.lists_of(row);
    RC_ASSERT(same(expected.after, found.after) && same(expected.reads, found.reads) &&
              same(expected.writes, found.writes) && same(expected.splits, found.splits));
  }
  void ask_completion(uint32_t sequence) const {
    const Completion expected = resident_.completion(sequence);
    const Completion found = spilled_.completion(sequence);
    RC_ASSERT(expected.issue == found.issue && expected.outcome == found.outcome &&
              expected.source == found.source);
  }

  LaneJournal& resident_;
  LaneJournal& spilled_;
  uint32_t tickets_ = 0;
};

}  // namespace

TEST_CASE("a journal bound to a few chunks answers as one that stays in memory") {
  const char* const name = "a journal bound to a few chunks answers as one that stays in memory";
  int cases = 0;
  int spilled_cases = 0;
  const bool held = holds(name, 150, [&] {
    ++cases;
    const auto store = std::make_shared<MemoryStore>();
    const int64_t bytes_max = *rc::gen::inRange<int64_t>(0, 8) * (int64_t{160} << 10);
    Journal resident(1, {});
    Journal spilled(1, {true, true, store, bytes_max});
    std::vector<Pair> pairs;
    for (uint16_t lane = 0; lane < lanes; ++lane) {
      pairs.emplace_back(resident.lane(0, LaneId{lane}), spilled.lane(0, LaneId{lane}));
    }
    const int steps = *rc::gen::inRange(1, 25);
    for (int step = 0; step < steps; ++step) {
      const auto key = *rc::gen::arbitrary<uint64_t>();
      Pair& pair = pairs[key % lanes];
      switch (*rc::gen::inRange(0, 6)) {
        case 0:
        case 1: pair.append(key, static_cast<int>(key % 5000)); break;
        case 2:
        case 3: pair.complete(key, static_cast<int>(key % 5000)); break;
        case 4: pair.truncate(key); break;
        default: break;
      }
      for (uint64_t question = 0; question < 10; ++question) {
        pairs[question % lanes].ask(random_key(key, question));
      }
    }
    spilled_cases += store->chunks.empty() ? 0 : 1;
    for (const Pair& pair : pairs) {
      pair.ask_all();
    }
  });
  REQUIRE(held);
  CHECK(2 * spilled_cases > cases);
}

}  // namespace journal_test
