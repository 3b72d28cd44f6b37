#pragma once

#include "model/user_program/call_submission.hpp"
#include "model/user_program/module_gather.hpp"
#include "model/user_program/named_communication.hpp"

namespace lockstep {

/// The statements of one rank that communicate, make groups, and wait for communication.
class CommunicationStatements {
 public:
  explicit CommunicationStatements(const StatementParts& parts);

  /// hvd.init and hvd.shutdown, where the program communicates by name.
  Program open() { return by_name_.open(); }
  Program close() { return by_name_.close(); }
  Program run(const Statement& statement, Frame& frame);

 private:
  Program communicate(const Statement& statement, Frame& frame);
  Program communicate_list(const Statement& statement, Frame& frame, Variable::List parts);
  Program communicate_grouped(const Statement& statement, Frame& frame);
  void check_batch(const Statement& statement) const;
  Program barrier(const Statement& statement, Frame& frame);
  Program new_group(const Statement& statement, Frame& frame);
  Program wait(const Statement& statement, Frame& frame);
  Program limit_dropped();

  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  TensorStore& tensors_;
  StreamOrder& streams_;
  ModuleNames& names_;
  ExpressionValues& expressions_;
  StartedWork& started_;
  ThreadCalls& threads_;
  CommunicationData data_;
  GroupStatements groups_;
  CommunicationCalls calls_;
  CallSubmission submission_;
  NamedCommunication by_name_;
  ModuleGather without_group_;
};

}  // namespace lockstep
