#include "io/report/journal_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <system_error>
#include <vector>

#include "io/report/rank_report.hpp"
#include "io/report/report_fields.hpp"

namespace lockstep {

namespace {

constexpr size_t window_bytes = size_t{48} << 14;  // whole records, and whole pages
constexpr size_t payload_bytes = 40;
constexpr uint16_t lanes_max = 1024;
constexpr size_t groups_max = 65536;

enum Kind : uint8_t { none, head, row, completion, group, members, splits, kinds };

/// What the first record of a file holds.
struct Head {
  uint64_t magic = 0x6c'6f'63'6b'73'74'65'70;
  int32_t version = 2;
  int32_t rank = 0;
  int32_t world_size = 0;
  int32_t unused = 0;
  RunIdentity identity{};
};

struct GroupHead {
  uint64_t communicator = 0;
};

}  // namespace

/// One event. A record counts once its kind is present, which is written last.
struct JournalFile::Record {
  uint8_t kind = none;
  uint8_t count = 0;  ///< values of a list in this record
  uint16_t lane = 0;
  uint32_t sequence = 0;  ///< of a ticket, or the number of a group
  alignas(8) std::byte payload[payload_bytes]{};

  template <class T>
  void hold(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= payload_bytes);
    std::memcpy(payload, &value, sizeof value);
  }
  template <class T>
  T held() const {
    T value;
    std::memcpy(&value, payload, sizeof value);
    return value;
  }
};

// Writing

JournalFile::JournalFile(const std::string& path, int32_t rank, int32_t world_size,
                         const RunIdentity& identity)
    : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  static_assert(sizeof(Record) == 48 && window_bytes % sizeof(Record) == 0);
  static_assert(sizeof(Row) <= payload_bytes && sizeof(Completion) <= payload_bytes);
  if (descriptor_ < 0 || !map_next()) {
    const int error = errno;
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
    throw std::system_error(error, std::generic_category(), path);
  }
  Head told;
  told.rank = rank;
  told.world_size = world_size;
  told.identity = identity;
  Record record;
  record.kind = head;
  record.hold(told);
  write(record);
}

JournalFile::~JournalFile() {
  if (window_ != nullptr) {
    munmap(window_, window_bytes);
  }
  close(descriptor_);
}

// The room is asked for before it is used: a store into a page that finds no room ends the process.
bool JournalFile::map_next() {
  if (window_ != nullptr) {
    munmap(window_, window_bytes);
    window_ = nullptr;
  }
  errno = posix_fallocate(descriptor_, mapped_to_, window_bytes);
  if (errno != 0) {
    return false;
  }
  void* memory =
      mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, mapped_to_);
  if (memory == MAP_FAILED) {
    return false;
  }
  window_ = static_cast<std::byte*>(memory);
  used_ = 0;
  mapped_to_ += static_cast<int64_t>(window_bytes);
  return true;
}

void JournalFile::write(const Record& record) {
  if (window_ == nullptr || (used_ == window_bytes && !map_next())) {
    return;
  }
  std::byte* place = window_ + used_;
  std::memcpy(place + 1, reinterpret_cast<const std::byte*>(&record) + 1, sizeof record - 1);
  // A process that is killed leaves its stores in program order, as the compiler left it.
  std::atomic_signal_fence(std::memory_order_release);
  *place = std::byte{record.kind};
  used_ += sizeof record;
}

template <class T>
void JournalFile::write_list(uint8_t kind, std::span<const T> values) {
  constexpr size_t each = payload_bytes / sizeof(T);
  for (size_t begin = 0; begin < values.size(); begin += each) {
    const auto part = values.subspan(begin, std::min(each, values.size() - begin));
    Record record;
    record.kind = kind;
    record.count = static_cast<uint8_t>(part.size());
    std::memcpy(record.payload, part.data(), part.size_bytes());
    write(record);
  }
}

void JournalFile::appended(LaneId lane, const Row& told, const RowLists& lists) {
  const std::lock_guard lock(mutex_);
  if (!lists.splits.empty()) {
    write_list<int64_t>(splits, lists.splits);
  }
  Record record;
  record.kind = row;
  record.lane = lane.value;
  record.hold(told);
  write(record);
}

void JournalFile::completed(Ticket ticket, const Completion& told) {
  const std::lock_guard lock(mutex_);
  Record record;
  record.kind = completion;
  record.lane = ticket.lane.value;
  record.sequence = ticket.sequence;
  record.hold(told);
  write(record);
}

void JournalFile::grouped(GroupId made, uint64_t communicator,
                          std::span<const int32_t> members_of_group) {
  const std::lock_guard lock(mutex_);
  write_list(members, members_of_group);
  Record record;
  record.kind = group;
  record.sequence = made.value;
  record.hold(GroupHead{communicator});
  write(record);
}

namespace {

// Reading

using Record = std::array<std::byte, 48>;

/// Takes the records of one rank one by one.
class Told {
 public:
  Told(int32_t rank, Journal& journal) : rank_(rank), journal_(journal) {}

  void take(uint8_t kind, uint8_t count, uint16_t lane, uint32_t sequence,
            std::span<const std::byte, payload_bytes> payload) {
    switch (kind) {
      case row: add_row(LaneId{lane}, value<Row>(payload)); break;
      case completion: completions_[{lane, sequence}] = value<Completion>(payload); break;
      case members: take_list(payload, count, members_); break;
      case splits: take_list(payload, count, splits_); break;
      case group: add_group(sequence, value<GroupHead>(payload)); break;
      default: break;
    }
  }

  // Records of tickets may precede the rows that made them.
  void finish() {
    for (const auto& [ticket, told] : completions_) {
      const auto& [lane, sequence] = ticket;
      if (lane < journal_.lanes(rank_) &&
          sequence <= static_cast<uint64_t>(std::as_const(journal_).lane(rank_, lane).size()) &&
          told.outcome <= Outcome::aborted) {
        journal_.lane(rank_, LaneId{lane}).complete(sequence, told);
      }
    }
  }

 private:
  template <class T>
  static T value(std::span<const std::byte, payload_bytes> payload) {
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }

  template <class T>
  static void take_list(std::span<const std::byte, payload_bytes> payload, uint8_t count,
                        std::vector<T>& to) {
    const size_t values = std::min<size_t>(count, payload_bytes / sizeof(T));
    const size_t before = to.size();
    to.resize(before + values);
    if (values > 0) {  // memcpy takes no null pointer, not even for nothing
      std::memcpy(to.data() + before, payload.data(), values * sizeof(T));
    }
  }

  void add_row(LaneId lane, Row told) {
    if (lane.value >= lanes_max) {
      throw ReportError("the journal of a rank has a row of an unknown lane");
    }
    check_kinds(told);
    told.lists = 0;
    if (!splits_.empty()) {
      told.lists = journal_.lane(rank_, lane).append_lists({{}, {}, {}, splits_, {}});
      splits_.clear();
    }
    journal_.lane(rank_, lane).append(told);
  }

  void add_group(uint32_t number, const GroupHead& made) {
    auto& groups = journal_.groups[static_cast<size_t>(rank_)];
    if (number > groups.size() + groups_max) {
      throw ReportError("the journal of a rank has an unknown group");
    }
    groups.resize(std::max<size_t>(groups.size(), size_t{number} + 1));
    groups[number] = {made.communicator, MemberList(std::exchange(members_, {}))};
  }

  int32_t rank_;
  Journal& journal_;
  std::map<std::pair<uint16_t, uint32_t>, Completion> completions_;
  std::vector<int32_t> members_;
  std::vector<int64_t> splits_;
};

}  // namespace

std::optional<RunIdentity> add_journal_file(std::span<const std::byte> file, int32_t rank,
                                            Journal& journal) {
  std::optional<RunIdentity> identity;
  Told told(rank, journal);
  for (size_t at = 0; at + sizeof(Record) <= file.size(); at += sizeof(Record)) {
    const auto kind = static_cast<uint8_t>(file[at]);
    const auto payload = file.subspan(at).subspan<8, payload_bytes>();
    if (at == 0) {
      Head first;
      std::memcpy(&first, payload.data(), sizeof first);
      const Head expected;
      if (kind != head || first.magic != expected.magic || first.version != expected.version ||
          first.rank != rank || first.world_size != journal.ranks()) {
        throw ReportError("this is not a journal of this rank and number of ranks");
      }
      identity = first.identity;
      continue;
    }
    if (kind == none || kind >= kinds) {
      break;
    }
    uint16_t lane = 0;
    uint32_t sequence = 0;
    std::memcpy(&lane, &file[at + 2], sizeof lane);
    std::memcpy(&sequence, &file[at + 4], sizeof sequence);
    told.take(kind, static_cast<uint8_t>(file[at + 1]), lane, sequence, payload);
  }
  told.finish();
  return identity;
}

}  // namespace lockstep
