#include "io/report/journal_file.hpp"

#include <unistd.h>
#include <algorithm>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "io/file/checksum.hpp"
#include "io/report/report_error.hpp"

using namespace lockstep;

namespace journal_file_test {

namespace {

class TemporaryFile {
 public:
  TemporaryFile()
      : path_((std::filesystem::temp_directory_path() / "lockstep-journal-XXXXXX").string()) {
    close(mkstemp(path_.data()));
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }
  std::vector<std::byte> bytes() const {
    std::ifstream in(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto span = std::as_bytes(std::span(text));
    return {span.begin(), span.end()};
  }

 private:
  std::string path_;
};

Row operation(uint32_t sequence, OpKind kind = OpKind::all_reduce) {
  Row row;
  row.kind = kind;
  row.sequence = sequence;
  row.bytes = 64;
  row.site = site_id("here");
  return row;
}

// Three operations of two lanes, of which one was done, and a group.
void write(JournalFile& file) {
  file.completed({1, LaneId{0}}, {Time(1), Time(2), Time(3), Outcome::ok, {}});  // before its row
  file.appended(LaneId{0}, operation(1), {});
  const std::vector<int32_t> members{2, 0, 1};
  file.grouped(GroupId{1}, 77, members);
  RowLists lists;
  const std::vector<int64_t> parts{3, 1, 4, 1, 5, 9, 2, 6};
  lists.splits = parts;
  file.appended(LaneId{0}, operation(2, OpKind::reduce_scatter), lists);
  file.appended(LaneId{1}, operation(1), {});
}

constexpr size_t record_bytes = 56;
constexpr size_t seal_bytes = 8;

// Head, outcome, row, members, group, splits (5 values, then 3), row, row.
constexpr size_t records_written = 9;

std::vector<std::byte> written(int32_t rank = 0, int32_t ranks = 3) {
  const TemporaryFile place;
  {
    JournalFile file(place.path(), rank, ranks);
    write(file);
  }
  return place.bytes();
}

bool same(const Journal& left, const Journal& right, int32_t rank) {
  if (!differences(left, right).empty() || left.groups[static_cast<size_t>(rank)].size() !=
                                               right.groups[static_cast<size_t>(rank)].size()) {
    return false;
  }
  for (int32_t lane = 0; lane < left.lanes(rank); ++lane) {
    for (uint32_t ticket = 0; ticket < 3; ++ticket) {
      if (left.lane(rank, lane).completion(ticket).outcome !=
          right.lane(rank, lane).completion(ticket).outcome) {
        return false;
      }
    }
  }
  return true;
}

/// The seal as documented in journal_record.hpp, over changed bytes.
void seal_again(std::vector<std::byte>& bytes, uint64_t number) {
  const auto record = std::span(bytes).subspan(number * record_bytes, record_bytes);
  const uint32_t sum =
      crc32c(record.first(record_bytes - seal_bytes), crc32c(std::as_bytes(std::span(&number, 1))));
  const uint64_t seal = uint64_t{~sum} << 32 | sum;
  std::memcpy(record.data() + record_bytes - seal_bytes, &seal, sizeof seal);
}

}  // namespace

TEST_CASE("a journal file records rows, outcomes, groups and splits") {
  const TemporaryFile place;
  {
    JournalFile file(place.path(), 1, 3);
    write(file);
  }
  Journal journal(3, {});
  add_journal_file(place.bytes(), 1, journal);
  REQUIRE(journal.lanes(1) == 2);
  const LaneJournal& main = std::as_const(journal).lane(1, 0);
  REQUIRE(main.size() == 2);
  CHECK(main.row(0) == operation(1));
  CHECK(main.completion(1).outcome == Outcome::ok);
  CHECK(main.completion(1).finish == Time(3));
  CHECK(main.completion(2).outcome == Outcome::pending);
  CHECK(main.row(1).kind == OpKind::reduce_scatter);
  const RowLists lists = main.lists_of(main.row(1));
  CHECK(std::vector<int64_t>(lists.splits.begin(), lists.splits.end()) ==
        std::vector<int64_t>{3, 1, 4, 1, 5, 9, 2, 6});
  CHECK(journal.communicator(1, GroupId{1}) == 77);
  CHECK(journal.groups[1][1].members == std::vector<int32_t>{2, 0, 1});
}

TEST_CASE("a journal file that its process left in the middle of a record ends before it") {
  const TemporaryFile place;
  {
    JournalFile file(place.path(), 0, 1);
    file.appended(LaneId{0}, operation(1), {});
    file.appended(LaneId{0}, operation(2), {});
  }
  // The seal of the last record is written last.
  std::vector<std::byte> bytes = place.bytes();
  std::fill_n(bytes.begin() + 3 * record_bytes - seal_bytes, seal_bytes, std::byte{0});
  Journal torn(1, {});
  add_journal_file(bytes, 0, torn);
  CHECK(std::as_const(torn).lane(0, 0).size() == 1);
}

TEST_CASE("a journal file grows beyond its first window") {
  const TemporaryFile place;
  constexpr int64_t rows = 40'000;
  {
    JournalFile file(place.path(), 0, 1);
    for (int64_t row = 1; row <= rows; ++row) {
      file.appended(LaneId{0}, operation(static_cast<uint32_t>(row)), {});
    }
  }
  Journal journal(1, {});
  add_journal_file(place.bytes(), 0, journal);
  CHECK(std::as_const(journal).lane(0, 0).size() == rows);
  CHECK(std::as_const(journal).lane(0, 0).row(rows - 1).sequence == rows);
}

TEST_CASE("a journal file of another rank or another run is refused") {
  const std::vector<std::byte> bytes = written(0, 3);
  Journal journal(3, {});
  CHECK_THROWS_AS(add_journal_file(bytes, 1, journal), ReportError);
  Journal larger(4, {});
  CHECK_THROWS_AS(add_journal_file(bytes, 0, larger), ReportError);
}

TEST_CASE("any changed byte of a journal file is reported or changes nothing") {
  const std::vector<std::byte> whole = written();
  Journal right(3, {});
  add_journal_file(whole, 0, right);
  for (size_t at = 0; at < (records_written + 2) * record_bytes; ++at) {
    std::vector<std::byte> bytes(whole.begin(), whole.begin() + 12 * record_bytes);
    for (int change = 1; change < 256; ++change) {
      bytes[at] = whole[at] ^ static_cast<std::byte>(change);
      Journal journal(3, {});
      try {
        add_journal_file(bytes, 0, journal);
        // What a rank that died left of a record it did not finish is nothing.
        const bool is_in_free_record = at >= records_written * record_bytes;
        if (!is_in_free_record || !same(journal, right, 0)) {
          FAIL("byte " << at << " changed by " << change << " passed unseen");
        }
      } catch (const DamagedReport& error) {
        const std::string place =
            "at byte " +
            std::to_string(std::min(at / record_bytes, records_written) * record_bytes);
        if (std::string(error.what()).find(place + ":") == std::string::npos) {
          FAIL("byte " << at << ": " << error.what());
        }
      }
    }
  }
}

TEST_CASE("a journal file cut anywhere is reported as cut or is whole") {
  const std::vector<std::byte> whole = written();
  Journal right(3, {});
  add_journal_file(whole, 0, right);
  for (size_t length = 0; length <= (records_written + 2) * record_bytes; ++length) {
    Journal journal(3, {});
    const auto cut = std::span(whole).first(length);
    if (length < (records_written + 1) * record_bytes) {
      CHECK_THROWS_AS(add_journal_file(cut, 0, journal), DamagedReport);
    } else {
      add_journal_file(cut, 0, journal);
      CHECK(same(journal, right, 0));
    }
  }
}

TEST_CASE("a large journal file cut at the end of a window is reported as cut") {
  const TemporaryFile place;
  {
    JournalFile file(place.path(), 0, 1);
    for (uint32_t row = 1; row <= 20'000; ++row) {
      file.appended(LaneId{0}, operation(row), {});
    }
  }
  const std::vector<std::byte> whole = place.bytes();
  const size_t window = record_bytes << 14;
  REQUIRE(whole.size() == 2 * window);
  Journal journal(1, {});
  CHECK_THROWS_AS(add_journal_file(std::span(whole).first(window), 0, journal), DamagedReport);
  for (size_t at = 0; at < 20'001 * record_bytes; at += 9973) {  // a prime: every place in a record
    std::vector<std::byte> bytes = whole;
    bytes[at] ^= std::byte{0x10};
    Journal changed(1, {});
    CHECK_THROWS_AS(add_journal_file(bytes, 0, changed), DamagedReport);
  }
}

TEST_CASE("a journal file filled in its last window says that it is") {
  // The last place of the first window holds a row, as there was room for a second one.
  const TemporaryFile place;
  constexpr uint32_t rows = (1 << 14) - 1;  // and the head
  {
    JournalFile file(place.path(), 0, 1);
    for (uint32_t row = 1; row <= rows; ++row) {
      file.appended(LaneId{0}, operation(row), {});
    }
  }
  Journal journal(1, {});
  add_journal_file(place.bytes(), 0, journal);
  CHECK(std::as_const(journal).lane(0, 0).size() == rows);
}

TEST_CASE("records of a journal file that no rank writes are refused even with their checksum") {
  const std::vector<std::byte> whole = written();
  for (size_t at = 0; at < records_written * record_bytes; ++at) {
    if (at % record_bytes >= record_bytes - seal_bytes) {
      continue;
    }
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> bytes(whole.begin(), whole.begin() + 12 * record_bytes);
      bytes[at] = static_cast<std::byte>(value);
      seal_again(bytes, at / record_bytes);
      Journal journal(3, {});
      try {
        add_journal_file(bytes, 0, journal);
        Journal right(3, {});
        differences(journal, right);  // uses kinds, purposes and choices as indices
        for (int32_t lane = 0; lane < journal.lanes(0); ++lane) {
          std::as_const(journal).lane(0, lane).for_each([](const Row& row) { text_of(row); });
        }
      } catch (const ReportError&) {
      }
    }
  }
}

TEST_CASE("a journal file of the format without checksums is reported as such") {
  // Records of 48 bytes: kind, count, lane, sequence, then a head of format 2.
  std::vector<std::byte> old(48 * 100);
  const uint64_t magic = 0x6c'6f'63'6b'73'74'65'70;
  const int32_t version = 2;
  old[0] = std::byte{1};
  std::memcpy(&old[8], &magic, sizeof magic);
  std::memcpy(&old[16], &version, sizeof version);
  old[48] = std::byte{2};  // a row follows
  Journal journal(1, {});
  CHECK_THROWS_WITH(add_journal_file(old, 0, journal), Catch::Contains("of format 2"));
}

TEST_CASE("a journal file that cannot be made says why") {
  CHECK_THROWS_AS(JournalFile("/nowhere/at/all.journal", 0, 1), std::system_error);
}

}  // namespace journal_file_test
