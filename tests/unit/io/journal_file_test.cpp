#include "io/report/journal_file.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "io/report/rank_report.hpp"

using namespace lockstep;

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

constexpr size_t record_bytes = 48;

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
  std::vector<std::byte> bytes = place.bytes();
  bytes[2 * record_bytes] = std::byte{0};  // the kind is written last
  Journal torn(1, {});
  add_journal_file(bytes, 0, torn);
  CHECK(std::as_const(torn).lane(0, 0).size() == 1);
  bytes.resize(2 * record_bytes - 1);
  Journal cut(1, {});
  add_journal_file(bytes, 0, cut);
  CHECK(std::as_const(cut).lane(0, 0).size() == 0);
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

TEST_CASE("a journal file of another rank, another run or another program is refused") {
  const TemporaryFile place;
  {
    JournalFile file(place.path(), 0, 2);
    write(file);
  }
  std::vector<std::byte> bytes = place.bytes();
  Journal journal(2, {});
  CHECK_THROWS_AS(add_journal_file(bytes, 1, journal), ReportError);
  Journal larger(3, {});
  CHECK_THROWS_AS(add_journal_file(bytes, 0, larger), ReportError);
  bytes[8] = std::byte{0};
  CHECK_THROWS_AS(add_journal_file(bytes, 0, journal), ReportError);
}

TEST_CASE("bytes of a journal file that nobody wrote do no harm") {
  const TemporaryFile place;
  {
    JournalFile file(place.path(), 0, 1);
    write(file);
  }
  const std::vector<std::byte> whole = place.bytes();
  for (size_t at = record_bytes; at < 9 * record_bytes; ++at) {
    for (const int value : {0x00, 0x01, 0x7f, 0xff}) {
      std::vector<std::byte> bytes(whole.begin(), whole.begin() + 12 * record_bytes);
      bytes[at] = static_cast<std::byte>(value);
      Journal journal(1, {});
      try {
        add_journal_file(bytes, 0, journal);
      } catch (const ReportError&) {
      }
    }
  }
  SUCCEED();
}

TEST_CASE("a journal file that cannot be made says why") {
  CHECK_THROWS_AS(JournalFile("/nowhere/at/all.journal", 0, 1), std::system_error);
}
