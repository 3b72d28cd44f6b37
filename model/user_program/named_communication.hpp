#pragma once

#include <string>

#include "model/user_program/communication_data.hpp"
#include "model/user_program/named_collectives.hpp"

namespace lockstep {

/// Statements of a program that communicates through Horovod, whose ranks meet by names.
class NamedCommunication {
 public:
  /// `data` outlive the communication, as all of the parts do.
  NamedCommunication(const StatementParts& parts, CommunicationData& data);

  /// hvd.init and hvd.shutdown; nothing where the program does not communicate by name.
  Program open();
  Program close() { return named_.close(); }
  Program communicate(const Statement& statement, Frame& frame);
  /// join and barrier, which move nothing.
  Program meet(const Statement& statement, RequestKind kind);
  /// hvd.synchronize. Gives the tensor that holds the result.
  Task<TensorPointer> finish(int64_t handle, SiteId site);

 private:
  Task<std::string> name_of_call(const Statement& statement, Frame& frame);
  Task<TensorRequest> request_of(const Statement& statement, Frame& frame,
                                 const DeviceTensor& data);
  TensorPointer target_of(const Statement& statement, const NamedTensor& data, bool gathers);
  Ticket handed_over(const Statement& statement);
  void note_handed_over(const TensorName& name, const std::string& given, int64_t handle,
                        SiteId site);

  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  TensorStore& tensors_;
  StreamOrder& streams_;
  ModuleNames& names_;
  TensorChecks& checks_;
  Locations& locations_;
  ExpressionValues& expressions_;
  StartedWork& started_;
  CommunicationData& data_;
  NamedCollectives named_;
};

}  // namespace lockstep
