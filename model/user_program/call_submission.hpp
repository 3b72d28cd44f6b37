#pragma once

#include <memory>
#include <vector>

#include "model/user_program/communication_call.hpp"

namespace lockstep {

/// Puts calls of one rank on their streams, and binds what they give. As in c10d, the
/// communicator's stream first waits for the current one (ProcessGroupNCCL's syncStream), and
/// Work.wait() makes the current one wait for it; a stream that the user names is itself current.
class CallSubmission {
 public:
  explicit CallSubmission(const StatementParts& parts);

  /// One grouped call of all that do something, which the host or the compute stream waits for
  /// unless the statement is async.
  Program submit(const Statement& statement, Frame& frame, std::vector<CommunicationCall>& calls);
  /// The same in two steps: the operation, and what is known of its tensors from then on. Gives
  /// the work of an async statement, else null.
  Ticket post(const Statement& statement, const std::vector<CommunicationCall>& calls);
  std::shared_ptr<PendingWork> mark(const Statement& statement, Frame& frame,
                                    std::vector<CommunicationCall>& calls, Ticket ticket);

 private:
  Rank& rank_;
  const ProgramSettings& settings_;
  TensorStore& tensors_;
  StreamOrder& streams_;
  ModuleNames& names_;
  StartedWork& started_;
  ThreadCalls& threads_;
};

}  // namespace lockstep
