#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "model/program/run.hpp"
#include "properties/diagnosis/calls.hpp"

namespace lockstep {

/// One operation of a journal and where it is in the sequence that it is matched by.
struct Operation {
  Row row;
  int32_t rank = 0;
  LaneId lane{};
  int64_t index = 0;  ///< of its row
  uint64_t communicator = 0;
  int64_t position = 0;       ///< among the collectives of its communicator, or of its channel
  int32_t source = any_rank;  ///< of a receive: the recorded choice when it takes any

  Ticket ticket() const { return {row.sequence, lane}; }
};

/// Messages from one rank to another, in the order of submission.
struct Channel {
  std::vector<size_t> sends;  ///< indices of operations
  std::vector<size_t> receives;
};
/// Communicator, from, to, tag.
using ChannelKey = std::tuple<uint64_t, int32_t, int32_t, int32_t>;

/// Which operations a table has.
enum class TabledOperations : uint8_t {
  all,
  /// Messages and exchanges of parts, of ranks with a journal of their own. Their tickets are not
  /// looked up.
  parts,
  /// Those that have not completed, and whole calls that some member has not completed: of a run
  /// without messages, or to look up tickets.
  undone,
};

/// Operations of a run, numbered, with what they are matched with. Matching is by position:
/// the k-th collective of a communicator, the k-th message of a channel.
class OperationTable {
 public:
  explicit OperationTable(const Journal& journal, TabledOperations which = TabledOperations::all);

  const Journal& journal() const { return *journal_; }
  size_t size() const { return operations_.size(); }
  const Operation& operator[](size_t operation) const { return operations_[operation]; }
  bool has_messages() const { return !channels_.empty(); }

  /// The operations of one ticket: several for a grouped call, none for a promise, or for what the
  /// table has not.
  std::pair<size_t, size_t> of_ticket(int32_t rank, Ticket ticket) const;
  /// The first operation of a lane; those of the lane follow in the order of its rows.
  size_t first_of(int32_t rank, int32_t lane) const;
  /// Whether a ticket is of an operation that the table has not because it has completed.
  bool has_completed(int32_t rank, Ticket ticket) const;

  /// The ranks of a communicator.
  const RankSet& members(uint64_t communicator) const;
  /// The members' operations at this position of a communicator.
  const std::vector<size_t>& call(uint64_t communicator, int64_t position) const;
  /// The other end of a message, or `none`.
  size_t partner(size_t operation) const;
  static constexpr size_t none = static_cast<size_t>(-1);

 private:
  /// Operations of a lane, in the order of their tickets.
  struct LaneRange {
    size_t first = 0;
    size_t end = 0;
  };
  /// By communicator.
  using Positions = std::map<uint64_t, int64_t>;
  void add_lane(int32_t rank, int32_t lane, Positions& positions);
  void add_undone(const Journal& journal);
  void add(const Operation& operation);
  void add_members(const Journal& journal);
  ChannelKey channel_of(const Operation& operation) const;

  bool has(const Row& row) const;

  const Journal* journal_;
  TabledOperations which_;
  std::vector<Operation> operations_;
  std::vector<std::vector<LaneRange>> lanes_;
  std::map<uint64_t, RankSet> members_;
  std::map<uint64_t, std::vector<std::vector<size_t>>> calls_;  ///< from `first_calls_` on
  Positions first_calls_;                                       ///< absent: 0
  std::map<ChannelKey, Channel> channels_;
};

}  // namespace lockstep
