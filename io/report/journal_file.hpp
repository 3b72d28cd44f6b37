#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "io/report/run_identity.hpp"
#include "model/program/journal.hpp"

namespace lockstep {

struct JournalRecord;

/// The journal of one rank as a file that grows with it, through memory that the file shares: what
/// was written stays when the process is killed. Every record has a checksum. When the disk is full
/// the file says so and stops growing.
class JournalFile final : public JournalFollower {
 public:
  /// Creates the file. Throws std::system_error.
  JournalFile(const std::string& path, int32_t rank, int32_t world_size,
              const RunIdentity& identity = {});
  ~JournalFile() override;
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  void appended(LaneId lane, const Row& row, const RowLists& lists) override;
  void completed(Ticket ticket, const Completion& completion) override;
  void grouped(GroupId group, uint64_t communicator, std::span<const int32_t> members) override;

 private:
  void write(const JournalRecord& record);
  void put(const JournalRecord& record);
  template <class T>
  void write_list(uint8_t kind, std::span<const T> values);
  /// Null: there is no room.
  std::byte* map_next();
  void close_all();

  std::mutex mutex_;
  int descriptor_ = -1;
  std::byte* window_ = nullptr;
  size_t used_ = 0;        ///< of the window
  int64_t mapped_to_ = 0;  ///< bytes of the file before the end of the window
  uint64_t records_ = 0;
};

/// Adds what such a file records to the rank's part of the journal, up to its last whole record: a
/// rank that was killed may have left the next one unfinished. Only the splits of an operation's
/// lists are stored. Returns the run that it is from. Trusts nothing: throws DamagedReport where a
/// byte is not as it was written or the end is missing, ReportError where this is no such file, or
/// one of another version, of a different rank or number of ranks, or of a rank whose disk was
/// full.
RunIdentity add_journal_file(std::span<const std::byte> file, int32_t rank, Journal& journal);

}  // namespace lockstep
