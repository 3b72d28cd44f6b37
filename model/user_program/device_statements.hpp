#pragma once

#include "model/user_program/statement_parts.hpp"

namespace lockstep {

/// The statements that put work on a rank's own device and host, and those that wait for it.
class DeviceStatements {
 public:
  explicit DeviceStatements(const StatementParts& parts);

  Program kernel(const Statement& statement, Frame& frame);
  Program copy(const Statement& statement, Frame& frame);
  Program host(const Statement& statement, Frame& frame);
  Program item(const Statement& statement, Frame& frame);
  Program synchronize(const Statement& statement);
  void wait_stream(const Statement& statement);

 private:
  TensorPointer named_tensor(const Placed<std::string>& name, Frame& frame, SiteId site);

  Rank& rank_;
  const ProgramSettings& settings_;
  RankLog& log_;
  TensorStore& tensors_;
  StreamOrder& streams_;
  ModuleNames& names_;
  TensorChecks& checks_;
  Locations& locations_;
  ExpressionValues& expressions_;
};

}  // namespace lockstep
