// Reads what a rank's JournalFile left.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "io/report/journal_file.hpp"
#include "io/report/journal_record.hpp"
#include "io/report/row_checks.hpp"

namespace lockstep {

namespace {

/// Takes the records of one rank one by one.
class Told {
 public:
  Told(int32_t rank, Journal& journal) : rank_(rank), journal_(journal) {}

  void take(const JournalRecord& record) {
    ++records_;
    switch (record.kind) {
      case JournalRecord::row: add_row(record); break;
      case JournalRecord::completion: add_completion(record); break;
      case JournalRecord::members:
        take_list(record, members_, static_cast<size_t>(journal_.ranks()));
        break;
      case JournalRecord::splits:  // what each member sends, then what it gets
        take_list(record, splits_, 4 * static_cast<size_t>(journal_.ranks()) + 64);
        break;
      case JournalRecord::group: add_group(record); break;
      case JournalRecord::full:
        throw ReportError(
            "the rank found no room on its disk, so its last operations are missing: make room, "
            "and "
            "run the ranks again");
      default: throw ReportError("it has a record of an unknown kind: run the ranks again");
    }
  }

  // Records of tickets may precede the rows that made them.
  void finish() {
    for (const auto& [ticket, told] : completions_) {
      const auto& [lane, sequence] = ticket;
      if (lane < journal_.lanes(rank_) &&
          sequence <= static_cast<uint64_t>(std::as_const(journal_).lane(rank_, lane).size())) {
        journal_.lane(rank_, LaneId{lane}).complete(sequence, told);
      }
    }
  }

 private:
  template <class T>
  static void take_list(const JournalRecord& record, std::vector<T>& to, size_t most) {
    if (record.count > JournalRecord::payload_bytes / sizeof(T) ||
        to.size() + record.count > most) {
      throw ReportError("it has a list that is too long: run the ranks again");
    }
    const size_t before = to.size();
    to.resize(before + record.count);
    if (record.count > 0) {  // memcpy takes no null pointer, not even for nothing
      std::memcpy(to.data() + before, record.payload, record.count * sizeof(T));
    }
  }

  void add_row(const JournalRecord& record) {
    if (record.lane >= recorded_lanes_max) {
      throw ReportError("it has a row of an unknown lane: run the ranks again");
    }
    LaneJournal& lane = journal_.lane(rank_, LaneId{record.lane});
    auto row = record.held<Row>();
    check_row(row, journal_.ranks(), lane.size());
    row.lists = 0;
    if (!splits_.empty()) {
      row.lists = lane.append_lists({{}, {}, {}, splits_, {}});
      splits_.clear();
    }
    lane.append(row);
  }

  void add_completion(const JournalRecord& record) {
    const auto told = record.held<Completion>();
    check_completion(told, journal_.ranks());
    completions_[{record.lane, record.sequence}] = told;
  }

  // A group was asked for by a row before.
  void add_group(const JournalRecord& record) {
    auto& groups = journal_.groups[static_cast<size_t>(rank_)];
    const uint32_t number = record.sequence;
    if (number == 0 || number >= recorded_groups_max || number > records_) {
      throw ReportError("it has a group of an unknown number: run the ranks again");
    }
    check_members(members_, journal_.ranks());
    groups.resize(std::max<size_t>(groups.size(), size_t{number} + 1));
    groups[number] = {record.held<JournalGroup>().communicator,
                      MemberList(std::exchange(members_, {}))};
  }

  int32_t rank_;
  Journal& journal_;
  uint64_t records_ = 0;
  std::map<std::pair<uint16_t, uint32_t>, Completion> completions_;
  std::vector<int32_t> members_;
  std::vector<int64_t> splits_;
};

// Up to version 2 records had no checksum and 48 bytes: where the seal is now, the next one begins.
void refuse_older_version(const JournalRecord& first) {
  const auto head = first.held<JournalHead>();
  const bool is_sealed =
      static_cast<uint32_t>(first.seal) == ~static_cast<uint32_t>(first.seal >> 32);
  if (first.kind == JournalRecord::head && head.magic == JournalHead::right_magic && !is_sealed &&
      (head.version == 1 || head.version == 2)) {
    throw ReportError(fmt::format(
        "it is a journal of format {}, and this version of lockstep reads format {}: run the ranks "
        "again, or compare with the version that they had",
        head.version, JournalHead::right_version));
  }
}

RunIdentity identity_of(const JournalRecord& first, int32_t rank, int32_t ranks) {
  const auto head = first.held<JournalHead>();
  if (first.kind != JournalRecord::head || head.magic != JournalHead::right_magic) {
    throw ReportError("this is not a journal of a rank");
  }
  if (head.version != JournalHead::right_version) {
    throw ReportError(fmt::format(
        "it is a journal of format {}, and this version of lockstep reads format {}: compare with "
        "the version that the ranks had, or run them again",
        head.version, JournalHead::right_version));
  }
  if (head.rank != rank || head.world_size != ranks) {
    throw ReportError(
        fmt::format("it is of rank {} of {}, and not of rank {} of {}: name the folder and the "
                    "scenario of one run",
                    head.rank, head.world_size, rank, ranks));
  }
  return head.identity;
}

/// The records of a file.
class Records {
 public:
  explicit Records(std::span<const std::byte> file) : file_(file) {}

  uint64_t at() const { return number_ * sizeof(JournalRecord); }

  /// False: the file ends here, as it should.
  bool next(JournalRecord& record) {
    if (file_.size() - at() < sizeof record) {
      throw DamagedReport(file_.size(), "the file is cut short here");
    }
    std::memcpy(&record, file_.data() + at(), sizeof record);
    if (record.seal == 0) {
      expect_nothing_behind();
      return false;
    }
    if (number_ == 0) {
      refuse_older_version(record);
    }
    if (record.seal != record.seal_for(number_)) {
      throw DamagedReport(at(),
                          fmt::format("one of the {} bytes from here has changed", sizeof record));
    }
    ++number_;
    return true;
  }

 private:
  // The rank may have begun this record, and no other.
  void expect_nothing_behind() const {
    const auto rest = file_.subspan(at() + sizeof(JournalRecord));
    const auto other =
        std::ranges::find_if(rest, [](std::byte byte) { return byte != std::byte{0}; });
    if (other != rest.end()) {
      throw DamagedReport(
          at(), fmt::format("this record is empty, but byte {} is not", other - file_.begin()));
    }
  }

  std::span<const std::byte> file_;
  uint64_t number_ = 0;
};

}  // namespace

RunIdentity add_journal_file(std::span<const std::byte> file, int32_t rank, Journal& journal) {
  Records records(file);
  JournalRecord record;
  if (!records.next(record)) {
    throw DamagedReport(0, "its first record is missing");
  }
  const RunIdentity identity = identity_of(record, rank, journal.ranks());
  Told told(rank, journal);
  while (records.next(record)) {
    if (record.kind == JournalRecord::head) {
      throw ReportError("it has two first records: run the ranks again");
    }
    told.take(record);
    if (record.kind == JournalRecord::full) {
      break;
    }
  }
  told.finish();
  return identity;
}

}  // namespace lockstep
