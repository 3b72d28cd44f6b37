#include <catch2/catch.hpp>

#include "model/program/journal.hpp"

using namespace lockstep;

namespace lane_journal_test {

namespace {

Row numbered(int64_t number) {
  Row row;
  row.bytes = number;
  return row;
}

}  // namespace

TEST_CASE("a lane's journal that is cut holds the rows before the cut and goes on from there") {
  constexpr int64_t chunk = LaneJournal::chunk_rows;
  for (const int64_t size : {chunk + 3, chunk, chunk - 1, int64_t{0}}) {
    LaneJournal journal;
    for (int64_t row = 0; row < chunk + 10; ++row) {
      journal.append(numbered(row));
    }
    journal.truncate(size);
    CHECK(journal.size() == size);
    journal.append(numbered(-1));
    CHECK(journal.row(size).bytes == -1);
    CHECK((size == 0 || journal.row(size - 1).bytes == size - 1));
  }
}

}  // namespace lane_journal_test
