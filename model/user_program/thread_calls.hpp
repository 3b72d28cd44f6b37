#pragma once

#include <map>
#include <vector>

#include "model/scenario/statement.hpp"
#include "model/user_program/statement_context.hpp"

namespace lockstep {

/// The first collective that each host thread of a rank has called on each group. Calls of one
/// group are matched by their order, which two threads do not agree on.
class ThreadCalls {
 public:
  /// All of the context outlives the calls.
  explicit ThreadCalls(const StatementContext& context) : rank_(context.rank), log_(context.log) {}

  void begin(LaneId thread) { first_of_[thread]; }
  /// A call of the thread that runs now, which may be none of those that have begun.
  void note(OpKind kind, GroupId group, SiteId site);
  /// All threads of a statement have ended: LS103 where two of them have called on one group.
  void end(const Statement& statement, const std::vector<LaneId>& threads);

 private:
  const Rank& rank_;
  RankLog& log_;
  std::map<LaneId, std::map<GroupId, SiteId>> first_of_;
};

}  // namespace lockstep
