#pragma once

#include "model/program/rank.hpp"

namespace lockstep {

/// The ranks among which an algorithm of Bagua runs: all, or in hierarchical mode the leaders of
/// nodes, with the ranks of its node behind each.
class BaguaGroups {
 public:
  /// Once. A collective of all ranks.
  Program make(Rank& rank, bool hierarchical);
  bool is_made() const { return ranks_ > 0; }

  bool takes_part() const { return takes_part_; }  ///< in the algorithm
  GroupId group() const { return group_; }
  int32_t ranks() const { return ranks_; }
  int32_t all_ranks() const { return ranks_ * stride_; }
  int32_t index() const { return index_; }  ///< of this rank, if it takes part
  /// The global rank of a member.
  int32_t member(int32_t index) const { return index * stride_; }
  bool has_nodes() const { return behind_leader_ > 1; }

  // In hierarchical mode; else `ready` comes back. In place, on the communication stream.
  Ticket reduce_to_leader(Rank& rank, const Slice& data, bool average, Ticket ready) const;
  Ticket send_from_leader(Rank& rank, const Slice& data, Ticket ready) const;

 private:
  GroupId group_ = world_group;
  GroupId node_ = world_group;
  int32_t ranks_ = 0;
  int32_t index_ = 0;
  int32_t stride_ = 1;
  int32_t leader_ = 0;         ///< of this rank's node
  int32_t behind_leader_ = 1;  ///< ranks of the node
  bool takes_part_ = true;
};

}  // namespace lockstep
