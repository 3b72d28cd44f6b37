#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/report/run_identity.hpp"
#include "model/program/journal.hpp"

namespace lockstep {

/// The journal of one rank as a file that grows with it, through memory that the file shares: what
/// was written stays when the process is killed. When the disk is full it stops growing.
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
  struct Record;
  void write(const Record& record);
  template <class T>
  void write_list(uint8_t kind, std::span<const T> values);
  bool map_next();

  std::mutex mutex_;
  int descriptor_ = -1;
  std::byte* window_ = nullptr;
  size_t used_ = 0;        ///< of the window
  int64_t mapped_to_ = 0;  ///< bytes of the file before the end of the window
};

/// Adds what such a file records to the rank's part of the journal; it ends where a record is torn.
/// Only the splits of an operation's lists are stored. Returns the run that it is from, or nothing
/// for an empty file. Trusts nothing:
/// throws ReportError where this is no such file, or one of a different rank or number of ranks.
std::optional<RunIdentity> add_journal_file(std::span<const std::byte> file, int32_t rank,
                                            Journal& journal);

}  // namespace lockstep
