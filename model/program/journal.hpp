#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/core/op.hpp"
#include "model/program/by_rank.hpp"
#include "model/program/lane_journal.hpp"
#include "model/program/member_list.hpp"
#include "model/program/port.hpp"

namespace lockstep {

/// Observes what one rank does as it does it, so that the record can outlive the rank's process.
/// Threads of the rank may call at the same time. Implemented outside the model.
class JournalFollower {
 public:
  virtual ~JournalFollower() = default;
  /// `lists` are empty where the journal keeps none for this row.
  virtual void appended(LaneId lane, const Row& row, const RowLists& lists) = 0;
  virtual void completed(Ticket ticket, const Completion& completion) = 0;
  virtual void grouped(GroupId group, uint64_t communicator, std::span<const int32_t> members) = 0;
};

struct JournalOptions {
  bool lists = false;                   ///< keep after, reads, writes and splits of every operation
  bool completions = true;              ///< keep times and outcomes
  std::shared_ptr<ChunkStore> store{};  ///< null: everything stays in memory
  /// Limit of full chunks in memory, over all lanes, before the oldest go to the store. What a lane
  /// writes to just now (up to 20 KiB of rows, and 16 KiB each of lists and completions) is not
  /// counted, nor are completions of which some are still pending.
  int64_t resident_bytes_max = int64_t{2} << 30;
  JournalFollower* follower = nullptr;  ///< of a journal that one rank alone writes; outlives it
};

/// A group as one rank knows it.
struct Membership {
  uint64_t communicator = 0;  ///< the same for all members of one communicator
  MemberList members{};       ///< one list for all ranks that made the group
};
/// Periods that a world has left out: they repeat, on a lane of a rank, the rows of an earlier
/// period. Times of later rows count them.
struct RepeatedRows {
  int64_t row = 0;      ///< before which they were left out
  int64_t begin = 0;    ///< first row of the period that is repeated
  int64_t end = 0;      ///< behind its last row
  int64_t periods = 0;  ///< left out
  Time period{};        ///< how long each of them takes
  Time first{};         ///< how much later than the one that it repeats the first of them begins
  /// What was left out within the period that is repeated: these entries of the rank's list, up to
  /// `end_inner`. Also where they repeat rows before `begin`.
  int64_t first_inner = 0;
  int64_t end_inner = 0;
  Time at{};  ///< on the clock of the rank's first lane: where the first of them begins
  int32_t level = period_level::batches;  ///< of the periods
};
/// How often an entry of such a list shows something beside the one time that it was simulated:
/// `count` says how often a period has it among its own rows.
std::vector<int64_t> times_repeated(std::span<const RepeatedRows> repeated,
                                    const std::function<int64_t(const RepeatedRows&)>& count);

/// Names the communicator that call number `call` (from 0) of the parent made for these members.
uint64_t communicator_key(uint64_t parent, int64_t call, std::span<const int32_t> members);

/// The common currency: what every rank did. One per run.
class Journal {
 public:
  /// `classes`: ranks of a class share the journal of one; null: each has its own.
  Journal(int32_t ranks, const JournalOptions& options,
          std::shared_ptr<const RankClasses> classes = nullptr);

  const JournalOptions& options() const { return options_; }
  int32_t ranks() const { return static_cast<int32_t>(lanes_.size()); }
  /// Ranks with a journal of their own: all, or the first of each class that shares one.
  std::vector<int32_t> own_ranks() const;
  /// The one of these whose journal it is.
  int32_t own_rank(int32_t rank) const {
    return static_cast<int32_t>(lanes_.first_sharing(static_cast<size_t>(rank)));
  }
  int32_t lanes(int32_t rank) const;
  LaneJournal& lane(int32_t rank, LaneId lane);
  const LaneJournal& lane(int32_t rank, int32_t lane) const;

  void append(int32_t rank, LaneId lane, const Row& row);
  /// The run is over: what is still appended, by programs that are unwound, is dropped.
  void close() { closed_ = true; }

  /// Every sites table that a reader needs to name the rows' places.
  Sites sites;
  /// Names in the scenario of additional queues of a device.
  std::map<uint8_t, std::string> stream_names;
  /// The groups that each rank made: index = GroupId; index 0, the world, stays empty.
  ByRank<std::vector<Membership>> groups;
  /// By rank, in the order in which they were left out: rows of its lane 0. Empty: nothing was, on
  /// any rank.
  ByRank<std::vector<RepeatedRows>> repeated;
  /// By rank and lane, from lane 1 on: the same entries, with the rows of that lane.
  ByRank<std::vector<std::vector<RepeatedRows>>> repeated_beside;
  /// The entries of a lane.
  std::span<const RepeatedRows> repeated_on(int32_t rank, int32_t lane) const;
  /// Whether some lane has such a row. Rows that lanes share are looked at once.
  template <class Wanted>
  bool has_row(const Wanted& wanted) const {
    std::unordered_set<const Chunk*> visited;
    for (const int32_t rank : own_ranks()) {
      for (int32_t number = 0; number < lanes(rank); ++number) {
        if (lane(rank, number).has_row(wanted, visited)) {
          return true;
        }
      }
    }
    return false;
  }
  /// An operation in the lane of `rank`, which may be that of another rank with neighbours of its
  /// own: with the neighbour that `rank` names. After name_own_groups().
  Row meant_by(int32_t rank, Row row) const;
  /// Groups of neighbours, as each rank has them, where until now ranks shared those of the one
  /// that ran for them.
  void name_own_groups();
  /// The communicator behind a rank's group; the world's key is 0 and its members are all ranks.
  uint64_t communicator(int32_t rank, GroupId group) const;

 private:
  std::vector<Membership> groups_of(int32_t rank) const;

  JournalOptions options_;
  std::shared_ptr<const RankClasses> classes_;
  std::unique_ptr<ChunkMemory> memory_;
  ByRank<std::vector<std::unique_ptr<LaneJournal>>> lanes_;
  bool closed_ = false;
};

/// The row that describes an operation.
Row row_of(const Op& op, Ticket ticket);

/// The first place where two journals differ in their host-order rows, rank by rank and lane by
/// lane; completions do not count.
struct JournalDifference {
  int32_t rank = 0;
  int32_t lane = 0;
  int64_t row = 0;
  std::string text;
};
std::vector<JournalDifference> differences(const Journal& left, const Journal& right,
                                           size_t limit = 1);
std::string text_of(const Row& row);

}  // namespace lockstep
