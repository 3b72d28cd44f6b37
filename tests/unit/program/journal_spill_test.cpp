#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "model/program/journal.hpp"
#include "tests/unit/program/memory_store.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace journal_spill_test {

namespace {

constexpr uint32_t chunk = LaneJournal::chunk_rows;

JournalOptions options_with(const std::shared_ptr<MemoryStore>& store, int64_t bytes) {
  return {true, true, store, bytes};
}

Row row_number(uint32_t number, uint16_t lane = 0) {
  Row row;
  row.sequence = number + 1;
  row.bytes = int64_t{number} * 2 + lane;
  return row;
}

// Three chunks and a piece on each of two lanes, every row different.
void fill(Journal& journal) {
  for (uint32_t number = 0; number < 3 * chunk + 5; ++number) {
    for (uint16_t lane = 0; lane < 2; ++lane) {
      journal.append(0, LaneId{lane}, row_number(number, lane));
    }
  }
}

Completion completion_of(uint32_t sequence) {
  return {Time(sequence), Time(2 * sequence), Time(3 * sequence), Outcome::ok, {}};
}

bool same(const Completion& left, const Completion& right) {
  return left.issue == right.issue && left.start == right.start && left.finish == right.finish &&
         left.outcome == right.outcome && left.source == right.source;
}

// The lists of operation `number`: from none to several of each kind.
struct Lists {
  explicit Lists(uint32_t number, size_t splits_count = 0)
      : after(number % 3, Ticket{number + 1, LaneId{1}}),
        reads(number % 2, Slice{BufferId{number}, DType::fp32, number, 4}),
        writes(1, Slice{BufferId{7}, DType::bf16, 1, number}),
        splits(splits_count, number) {}
  OpLists views() const { return {after, reads, writes, splits, {}}; }
  void check(const RowLists& found) const {
    REQUIRE(std::vector<Ticket>(found.after.begin(), found.after.end()) == after);
    REQUIRE(std::vector<Slice>(found.reads.begin(), found.reads.end()) == reads);
    REQUIRE(std::vector<Slice>(found.writes.begin(), found.writes.end()) == writes);
    REQUIRE(std::vector<int64_t>(found.splits.begin(), found.splits.end()) == splits);
  }

  std::vector<Ticket> after;
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  std::vector<int64_t> splits;
};

}  // namespace

TEST_CASE("a journal that spills reads like one that stays in memory") {
  const auto store = std::make_shared<MemoryStore>();
  Journal resident(1, {});
  Journal spilled(1, options_with(store, int64_t{chunk} * int64_t{sizeof(Row)}));
  fill(resident);
  fill(spilled);
  CHECK(store->chunks.size() == 5);  // six are full, one may stay
  CHECK(differences(resident, spilled).empty());
  for (int32_t lane = 0; lane < 2; ++lane) {
    int64_t index = 0;
    spilled.lane(0, lane).for_each([&](const Row& row) {
      REQUIRE(row == resident.lane(0, lane).row(index));
      ++index;
    });
    CHECK(index == resident.lane(0, lane).size());
  }
}

TEST_CASE("the oldest chunks are spilled, and reading in order loads each of them once") {
  const auto store = std::make_shared<MemoryStore>();
  Journal journal(1, options_with(store, 0));
  LaneJournal& lane = journal.lane(0, LaneId{0});
  for (uint32_t number = 0; number < 4 * chunk + 1; ++number) {
    lane.append(row_number(number));
  }
  REQUIRE(store->chunks.size() == 3);
  REQUIRE(store->chunks[0].size() == chunk * sizeof(Row));
  RowCursor cursor(lane);
  for (uint32_t number = 0; number < 4 * chunk + 1; ++number) {
    REQUIRE(cursor.next() == row_number(number));
  }
  for (const auto& [number, times] : store->loads) {
    CHECK(times == 1);
  }
}

TEST_CASE("lanes with equal rows hold each full chunk once") {
  const auto store = std::make_shared<MemoryStore>();
  Journal journal(3, options_with(store, 4 * int64_t{chunk} * int64_t{sizeof(Row)}));
  for (int32_t rank = 0; rank < 3; ++rank) {
    for (uint32_t number = 0; number < 3 * chunk + 1; ++number) {
      // The second chunk of rank 2 alone is another.
      const bool differs = rank == 2 && number == chunk + 7;
      journal.append(rank, LaneId{0}, row_number(differs ? 1'000'000 : number));
    }
  }
  CHECK(store->chunks.empty());  // nine are full, of which four are different
  for (int32_t rank = 0; rank < 3; ++rank) {
    for (uint32_t number = 0; number < 3 * chunk + 1; ++number) {
      const bool differs = rank == 2 && number == chunk + 7;
      REQUIRE(journal.lane(rank, 0).row(number) == row_number(differs ? 1'000'000 : number));
    }
  }
}

TEST_CASE("a lane that is cut and goes on leaves the rows of those that shared its chunks alone") {
  for (const uint32_t size : {0u, 1u, chunk - 1, chunk, chunk + 1, 2 * chunk}) {
    const auto store = std::make_shared<MemoryStore>();
    Journal journal(3, options_with(store, int64_t{1} << 30));
    const auto fill_rank = [&](int32_t rank) {
      for (uint32_t number = 0; number < 2 * chunk + 1; ++number) {
        journal.append(rank, LaneId{0}, row_number(number));
      }
    };
    fill_rank(0);
    fill_rank(1);
    journal.lane(0, LaneId{0}).truncate(size);
    fill_rank(2);  // what rank 0 had it may find again, but not in what rank 0 writes to now
    for (uint32_t number = size; number < 2 * chunk + 1; ++number) {
      journal.append(0, LaneId{0}, row_number(number + 1'000'000));
    }
    for (uint32_t number = 0; number < 2 * chunk + 1; ++number) {
      const uint32_t written = number < size ? number : number + 1'000'000;
      REQUIRE(journal.lane(0, 0).row(number) == row_number(written));
      REQUIRE(journal.lane(1, 0).row(number) == row_number(number));
      REQUIRE(journal.lane(2, 0).row(number) == row_number(number));
    }
  }
}

TEST_CASE("completions are spilled when all of a chunk have settled, and not before") {
  const auto store = std::make_shared<MemoryStore>();
  Journal journal(1, options_with(store, 0));
  LaneJournal& lane = journal.lane(0, LaneId{0});
  constexpr uint32_t late = 17;
  for (uint32_t sequence = 1; sequence < 4 * chunk; ++sequence) {
    if (sequence != late) {
      lane.complete(sequence, completion_of(sequence));
    }
  }
  // Of four chunks the first waits for `late` and one is the newest.
  CHECK(store->chunks.size() == 2);
  CHECK(lane.completion(late).outcome == Outcome::pending);
  lane.complete(late, completion_of(late));
  CHECK(store->chunks.size() == 3);
  for (uint32_t sequence = 1; sequence < 4 * chunk; ++sequence) {
    REQUIRE(same(lane.completion(sequence), completion_of(sequence)));
  }
  CHECK(lane.completion(4 * chunk).outcome == Outcome::pending);
}

TEST_CASE("a completion that changes after it was spilled is read as it was changed") {
  const auto store = std::make_shared<MemoryStore>();
  Journal journal(1, options_with(store, 0));
  LaneJournal& lane = journal.lane(0, LaneId{0});
  for (uint32_t sequence = 1; sequence < 3 * chunk; ++sequence) {
    lane.complete(sequence, completion_of(sequence));
  }
  lane.complete(5, completion_of(500));
  CHECK(same(lane.completion(chunk + 5), completion_of(chunk + 5)));  // pushes the change out
  CHECK(same(lane.completion(2 * chunk + 5), completion_of(2 * chunk + 5)));
  CHECK(same(lane.completion(5), completion_of(500)));
  CHECK(same(lane.completion(6), completion_of(6)));
}

TEST_CASE("lists are spilled and come back, also those that are longer than a chunk") {
  const auto store = std::make_shared<MemoryStore>();
  Journal journal(1, options_with(store, 0));
  LaneJournal& lane = journal.lane(0, LaneId{0});
  const auto splits = [](uint32_t number) {
    // 1.5 chunks of numbers, and one that just fills a chunk with its sizes.
    return number == 100   ? LaneJournal::chunk_words * 3 / 2
           : number == 210 ? LaneJournal::chunk_words - 2 - 3
                           : size_t{number % 5};
  };
  constexpr uint32_t operations = 5000;
  for (uint32_t number = 0; number < operations; ++number) {
    Row row = row_number(number);
    row.lists = lane.append_lists(Lists(number, splits(number)).views());
    lane.append(row);
  }
  CHECK(store->chunks.size() > 5);
  for (uint32_t number = 0; number < operations; ++number) {
    Lists(number, splits(number)).check(lane.lists_of(lane.row(number)));
  }
}

TEST_CASE("lists stay as they are for as long as they are looked at") {
  const auto store = std::make_shared<MemoryStore>();
  Journal journal(1, options_with(store, 0));
  LaneJournal& lane = journal.lane(0, LaneId{0});
  std::vector<Row> rows;
  for (uint32_t number = 0; number < 6000; ++number) {
    rows.push_back(row_number(number));
    rows.back().lists = lane.append_lists(Lists(number, 3).views());
  }
  const RowLists first = lane.lists_of(rows.front());
  const RowLists last = lane.lists_of(rows.back());
  for (const Row& row : rows) {
    REQUIRE(lane.lists_of(row).splits.size() == 3);
  }
  Lists(0, 3).check(first);
  Lists(5999, 3).check(last);
}

TEST_CASE("equal lists of neighbouring operations are kept once, empty ones not at all") {
  LaneJournal lane;
  const Lists lists(4, 2);
  CHECK(lane.append_lists({}) == 0);
  const uint32_t kept = lane.append_lists(lists.views());
  CHECK(kept != 0);
  CHECK(lane.append_lists(lists.views()) == kept);
  CHECK(lane.append_lists({}) == 0);
  const uint32_t other = lane.append_lists(Lists(5, 2).views());
  CHECK(other != kept);
  CHECK(lane.append_lists(lists.views()) != other);
  CHECK(lane.lists_of(Row{}).writes.empty());
}

TEST_CASE("a journal whose store is full goes on in memory and loses nothing") {
  const auto store = std::make_shared<MemoryStore>(1);
  Journal resident(1, {});
  Journal spilled(1, options_with(store, 0));
  fill(resident);
  fill(spilled);
  CHECK(store->chunks.size() == 1);
  CHECK(differences(resident, spilled).empty());
}

TEST_CASE("a journal is cut also where its rows were spilled") {
  for (const uint32_t size : {0u, 1u, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 2}) {
    const auto store = std::make_shared<MemoryStore>();
    Journal journal(1, options_with(store, 0));
    LaneJournal& lane = journal.lane(0, LaneId{0});
    for (uint32_t number = 0; number < 3 * chunk + 5; ++number) {
      lane.append(row_number(number));
    }
    lane.truncate(size);
    for (uint32_t number = size; number < 4 * chunk + 5; ++number) {
      lane.append(row_number(number + 1'000'000));
    }
    REQUIRE(lane.size() == 4 * chunk + 5);
    uint32_t number = 0;
    lane.for_each([&](const Row& row) {
      REQUIRE(row == row_number(number < size ? number : number + 1'000'000));
      ++number;
    });
  }
}

}  // namespace journal_spill_test
