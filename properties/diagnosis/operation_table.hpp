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

  /// The operations of one ticket: several for a grouped call, none for a promise.
  std::pair<size_t, size_t> of_ticket(int32_t rank, Ticket ticket) const;
  /// The first operation of a lane; those of the lane follow in the order of its rows.
  size_t first_of(int32_t rank, int32_t lane) const;

  /// The ranks of a communicator.
  const RankSet& members(uint64_t communicator) const;
  /// The members' operations at this position of a communicator.
  const std::vector<size_t>& call(uint64_t communicator, int64_t position) const;
  /// The other end of a message, or `none`.
  size_t partner(size_t operation) const;
  static constexpr size_t none = static_cast<size_t>(-1);

 private:
  struct LaneIndex {
    size_t first = 0;
    std::vector<size_t> by_sequence;  ///< first operation of a ticket, or none
  };
  void add_lane(int32_t rank, int32_t lane,
                std::map<std::pair<int32_t, uint64_t>, int64_t>& positions);
  void add_members(const Journal& journal);
  ChannelKey channel_of(const Operation& operation) const;

  bool has(const Row& row) const;

  const Journal* journal_;
  TabledOperations which_;
  std::vector<Operation> operations_;
  std::vector<std::vector<LaneIndex>> lanes_;
  std::map<uint64_t, RankSet> members_;
  std::map<uint64_t, std::vector<std::vector<size_t>>> calls_;
  std::map<ChannelKey, Channel> channels_;
};

}  // namespace lockstep
