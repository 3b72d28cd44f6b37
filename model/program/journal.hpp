#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/core/failure.hpp"
#include "model/core/op.hpp"
#include "model/program/member_list.hpp"
#include "model/program/port.hpp"

namespace lockstep {

/// What a row of a journal tells. The first kinds are those of Op; the others are host order.
enum class RowKind : uint8_t {
  op,        ///< kind and arguments of an Op
  promise,   ///< a ticket settled by hand was made
  fulfil,    ///< sequence: which
  settle,    ///< the host waited for ticket `sequence` of lane `peer`
  read,      ///< the host read `bytes` of buffer `tag`
  choice,    ///< ChoiceKind `tag`, alternatives `bytes`, taken `peer`
  allocate,  ///< buffer `tag`, `bytes`, purpose `peer`, device `stream`
  release,   ///< buffer `tag`
  raise,     ///< the lane ended by an exception at `site`
  finish,    ///< the lane's program ended
};

/// One thing that a lane did, in host order.
struct Row {
  RowKind row = RowKind::op;
  OpKind kind = OpKind::event;
  DType dtype = DType::uint8;
  Reduction reduction = Reduction::sum;
  StreamId stream{};
  Kernel kernel = Kernel::timed;
  GroupId group{};
  int32_t peer = 0;
  int32_t tag = 0;
  SiteId site{};
  uint32_t sequence = 0;  ///< of the ticket; parts of a grouped call share it
  uint32_t lists = 0;     ///< index of this row's lists plus one; 0 = none kept
  int64_t bytes = 0;
  bool operator==(const Row&) const = default;
};
static_assert(sizeof(Row) == 40);

/// What became of a ticket: filled in by the world, no part of what makes journals equal.
struct Completion {
  Time issue{};
  Time start{};
  Time finish{};
  Outcome outcome = Outcome::pending;
  RankId source{};  ///< of a receive
};

/// The lists of one operation, kept when a journal is detailed.
struct RowLists {
  std::vector<Ticket> after;
  std::vector<Slice> reads;
  std::vector<Slice> writes;
  std::vector<int64_t> splits;
  bool operator==(const RowLists&) const = default;
};

/// Where full chunks go when a journal grows beyond its bound. Implemented outside the model.
class ChunkStore {
 public:
  virtual ~ChunkStore() = default;
  /// Keeps the bytes and returns a number by which `load` finds them.
  virtual uint64_t save(std::span<const std::byte> bytes) = 0;
  virtual void load(uint64_t number, std::span<std::byte> bytes) = 0;
};

struct JournalOptions {
  bool lists = false;                   ///< keep after, reads, writes and splits of every operation
  bool completions = true;              ///< keep times and outcomes
  ChunkStore* store = nullptr;          ///< null: everything stays in memory
  int64_t resident_chunks_max = 65536;  ///< full chunks in memory, over all lanes, before spilling
};

/// The rows of one lane, in chunks.
class LaneJournal {
 public:
  static constexpr uint32_t chunk_rows = 4096;

  void append(const Row& row);
  uint32_t append_lists(const OpLists& lists);
  void complete(uint32_t sequence, const Completion& completion);
  /// Forgets all rows from `size` on; they must still be in memory.
  void truncate(int64_t size);

  int64_t size() const { return size_; }
  Row row(int64_t index) const;
  const RowLists* lists_of(const Row& row) const;
  /// Pending when the world never said what became of it.
  Completion completion(uint32_t sequence) const;
  /// Calls `visit` for each row in order; loads spilled chunks one at a time.
  void for_each(const std::function<void(const Row&)>& visit) const;

 private:
  friend class Journal;
  friend class RowCursor;
  struct Chunk {
    std::vector<Row> rows;
    uint64_t stored = 0;  ///< number in the store plus one; 0 = in memory
  };
  std::vector<Row> rows_of(const Chunk& chunk) const;

  int64_t size_ = 0;
  ChunkStore* store_ = nullptr;
  std::vector<Chunk> chunks_;
  std::vector<RowLists> lists_;
  std::vector<Completion> completions_;
};

/// The rows of a lane one after the other: loads each spilled chunk once.
class RowCursor {
 public:
  explicit RowCursor(const LaneJournal& lane) : lane_(&lane) {}
  /// There must be one: at most `size` calls.
  Row next();

 private:
  const LaneJournal* lane_;
  size_t chunk_ = 0;
  std::vector<Row> rows_;
  size_t row_ = 0;
};

/// A group as one rank knows it.
struct Membership {
  uint64_t communicator = 0;  ///< the same for all members of one communicator
  MemberList members{};       ///< one list for all ranks that made the group
};
/// Names the communicator that call number `call` (from 0) of the parent made for these members.
uint64_t communicator_key(uint64_t parent, int64_t call, std::span<const int32_t> members);

/// The common currency: what every rank did. One a run.
class Journal {
 public:
  Journal(int32_t ranks, const JournalOptions& options);

  const JournalOptions& options() const { return options_; }
  int32_t ranks() const { return static_cast<int32_t>(lanes_.size()); }
  int32_t lanes(int32_t rank) const;
  LaneJournal& lane(int32_t rank, LaneId lane);
  const LaneJournal& lane(int32_t rank, int32_t lane) const;

  void append(int32_t rank, LaneId lane, const Row& row);
  /// The run is over: what is still appended, by programs that are unwound, is dropped.
  void close() { closed_ = true; }

  /// Every sites table that a reader needs to name the rows' places.
  Sites sites;
  /// What the scenario calls the queues of a device that are not the usual ones.
  std::map<uint8_t, std::string> stream_names;
  /// The groups that each rank made: index = GroupId; index 0, the world, stays empty.
  std::vector<std::vector<Membership>> groups;
  /// The communicator behind a rank's group; the world's key is 0 and its members are all ranks.
  uint64_t communicator(int32_t rank, GroupId group) const;

 private:
  void spill(LaneJournal& lane);

  JournalOptions options_;
  std::vector<std::vector<std::unique_ptr<LaneJournal>>> lanes_;
  int64_t resident_chunks_ = 0;
  bool closed_ = false;
};

/// The row that tells an operation.
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
