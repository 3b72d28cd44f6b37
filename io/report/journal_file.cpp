#include "io/report/journal_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "io/report/journal_record.hpp"

namespace lockstep {

namespace {

// Under its name the file has a first record: a file without one was cut.
std::string name_while_made(const std::string& path) { return path + ".new"; }

}  // namespace

JournalFile::JournalFile(const std::string& path, int32_t rank, int32_t world_size,
                         const RunIdentity& identity)
    : descriptor_(open(name_while_made(path).c_str(),
                       O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  static_assert(sizeof(Row) <= JournalRecord::payload_bytes &&
                sizeof(Completion) <= JournalRecord::payload_bytes &&
                sizeof(JournalHead) <= JournalRecord::payload_bytes);
  if (descriptor_ >= 0) {
    window_ = map_next();
  }
  JournalHead told;
  told.rank = rank;
  told.world_size = world_size;
  told.identity = identity;
  JournalRecord record;
  record.kind = JournalRecord::head;
  record.hold(told);
  if (window_ != nullptr) {
    write(record);
  }
  if (window_ == nullptr || std::rename(name_while_made(path).c_str(), path.c_str()) != 0) {
    const int error = errno;
    close_all();
    if (descriptor_ >= 0) {
      std::remove(name_while_made(path).c_str());
    }
    throw std::system_error(error, std::generic_category(), path);
  }
}

JournalFile::~JournalFile() { close_all(); }

void JournalFile::close_all() {
  if (window_ != nullptr) {
    munmap(window_, journal_window_bytes);
  }
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

// The room is asked for before it is used: a store into a page that finds no room ends the process.
std::byte* JournalFile::map_next() {
  errno = posix_fallocate(descriptor_, mapped_to_, journal_window_bytes);
  if (errno != 0) {
    return nullptr;
  }
  void* memory = mmap(nullptr, journal_window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      descriptor_, mapped_to_);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  mapped_to_ += static_cast<int64_t>(journal_window_bytes);
  return static_cast<std::byte*>(memory);
}

void JournalFile::write(const JournalRecord& record) {
  if (window_ == nullptr) {
    return;
  }
  if (used_ + sizeof record < journal_window_bytes) {
    put(record);
    return;
  }
  // The last place of a window: a file always ends with a free place, or says that it is full.
  std::byte* next = map_next();
  if (next == nullptr) {
    JournalRecord full;
    full.kind = JournalRecord::full;
    put(full);
  } else {
    put(record);
  }
  munmap(window_, journal_window_bytes);
  window_ = next;
  used_ = 0;
}

void JournalFile::put(const JournalRecord& record) {
  std::byte* place = window_ + used_;
  std::memcpy(place, &record, sizeof record - sizeof record.seal);
  // A process that is killed leaves its stores in program order, as the compiler left it.
  std::atomic_signal_fence(std::memory_order_release);
  auto* seal = reinterpret_cast<uint64_t*>(place + sizeof record - sizeof record.seal);
  std::atomic_ref(*seal).store(record.seal_for(records_), std::memory_order_relaxed);
  ++records_;
  used_ += sizeof record;
}

template <class T>
void JournalFile::write_list(uint8_t kind, std::span<const T> values) {
  constexpr size_t each = JournalRecord::payload_bytes / sizeof(T);
  for (size_t begin = 0; begin < values.size(); begin += each) {
    const auto part = values.subspan(begin, std::min(each, values.size() - begin));
    JournalRecord record;
    record.kind = kind;
    record.count = static_cast<uint8_t>(part.size());
    std::memcpy(record.payload, part.data(), part.size_bytes());
    write(record);
  }
}

void JournalFile::appended(LaneId lane, const Row& told, const RowLists& lists) {
  const std::lock_guard lock(mutex_);
  write_list<int64_t>(JournalRecord::splits, lists.splits);
  JournalRecord record;
  record.kind = JournalRecord::row;
  record.lane = lane.value;
  record.hold(told);
  write(record);
}

void JournalFile::completed(Ticket ticket, const Completion& told) {
  const std::lock_guard lock(mutex_);
  JournalRecord record;
  record.kind = JournalRecord::completion;
  record.lane = ticket.lane.value;
  record.sequence = ticket.sequence;
  record.hold(told);
  write(record);
}

void JournalFile::grouped(GroupId made, uint64_t communicator,
                          std::span<const int32_t> members_of_group) {
  const std::lock_guard lock(mutex_);
  write_list(JournalRecord::members, members_of_group);
  JournalRecord record;
  record.kind = JournalRecord::group;
  record.sequence = made.value;
  record.hold(JournalGroup{communicator});
  write(record);
}

}  // namespace lockstep
