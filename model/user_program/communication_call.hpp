#pragma once

#include <string>
#include <vector>

#include "model/user_program/communication_data.hpp"
#include "model/user_program/gloo_queues.hpp"
#include "model/user_program/group_statements.hpp"

namespace lockstep {

/// One communication, ready to be put into a grouped call.
struct CommunicationCall {
  Op op;
  Slice read;
  Slice write;
  std::vector<int64_t> splits;
  TensorPointer data;          ///< null for a barrier
  TensorPointer result;        ///< null where this rank gets none
  GradientPointer gradient;    ///< that flows through the result
  bool data_is_named = false;  ///< the data stays usable beside the result
  bool in_place = false;       ///< the operation writes its data
  bool needs_copy = false;     ///< of data to result, before it
  std::string name;            ///< the result is bound to it, unless empty
  StreamId stream = communication_stream;
  bool does_nothing = false;  ///< this rank is no member of the group
};

/// Reads communication statements of one rank: peers, parts, result and stream of each call.
class CommunicationCalls {
 public:
  /// `groups` outlive the calls, as all of the parts do.
  CommunicationCalls(const StatementParts& parts, GroupStatements& groups);

  Task<CommunicationCall> with(const Statement& statement, Frame& frame, NamedTensor data);
  /// The stream of collectives of a group, where the user names none.
  StreamId stream_of_group(GroupId group);

 private:
  using Call = CommunicationCall;
  StreamId stream_of_call(const Statement& statement, const Op& op);
  void check_reduction(const Statement& statement, Call& call);
  Program set_peer(const Statement& statement, Frame& frame, const Group& group, Call& call);
  Program set_splits(const Statement& statement, Frame& frame, const Group& group, Call& call);
  Task<int64_t> add_splits(const std::vector<Placed<Expression>>& sizes, Frame& frame,
                           const Group& group, Call& call);
  void set_result(const Statement& statement, const Group& group, Call& call);
  GradientPointer gradient_through(const Statement& statement, const Group& group, const Call& call,
                                   GradientPointer data);

  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  TensorStore& tensors_;
  TensorChecks& checks_;
  Locations& locations_;
  GradientTape& tape_;
  ExpressionValues& expressions_;
  GroupStatements& groups_;
  GlooQueues gloo_queues_;
};

}  // namespace lockstep
