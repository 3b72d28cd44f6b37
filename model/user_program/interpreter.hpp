#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "model/user_program/backward_walk.hpp"
#include "model/user_program/communication_statements.hpp"
#include "model/user_program/device_statements.hpp"

namespace lockstep {

/// Runs the statements of one rank: those that steer the program itself, and all others by the part
/// that knows their family. Two orders are kept apart: statements order the device through streams
/// (StreamOrder), and the host waits only where PyTorch's would.
class Interpreter {
 public:
  /// All outlive the interpreter; `trainer` is null for a bare program.
  Interpreter(Rank& rank, const ProgramSettings& settings, RankLog& log, TrainerScope* trainer);

  /// The statements in order. `return` ends the hook, not only this list.
  Task<Flow> run(const std::vector<Statement>& statements, Frame& frame);
  /// The hook of these names has ended, at this site.
  void leave(Frame& frame, SiteId hook);
  /// The first and the last of a program: hvd.init and hvd.shutdown, where it communicates by name.
  Program open() { return communication_.open(); }
  Program close() { return communication_.close(); }
  /// LS403 where work was started and never waited for. To be called where the program ends.
  void tell_unwaited() { started_.tell_unwaited(); }

  /// Whether the statement that runs stands behind an `if`.
  bool is_guarded() const { return guards_ > 0; }
  SiteId site() const { return tensors_.site(); }  ///< of the statement that runs

  // The parts, for whoever runs beside statements: the trainer, its logging, its metrics.
  Rank& rank() { return context_.rank; }
  RankLog& log() { return context_.log; }
  TensorStore& tensors() { return tensors_; }
  const TensorStore& tensors() const { return tensors_; }
  StreamOrder& streams() { return streams_; }
  ModuleNames& names() { return names_; }
  Locations& locations() { return locations_; }
  GradientTape& tape() { return tape_; }
  BackwardWalk& backward() { return backward_; }
  ExpressionValues& expressions() { return expressions_; }
  const ProgramSettings& settings() const { return context_.settings; }

 private:
  StatementParts parts();

  // interpreter.cpp
  Task<Flow> execute(const Statement& statement, Frame& frame);
  Task<Flow> branch(const Statement& statement, Frame& frame);
  Task<Flow> repeat(const Statement& statement, Frame& frame);
  Program assign(const Statement& statement, Frame& frame);
  Program append(const Statement& statement, Frame& frame);
  Program check_assertion(const Statement& statement, Frame& frame);

  // control.cpp
  Task<Flow> call_function(const Statement& statement, Frame& frame);
  Task<Flow> attempt(const Statement& statement, Frame& frame);
  Program run_threads(const Statement& statement, Frame& frame);
  Program run_thread(const Statement& thread, Frame& frame, Ticket done,
                     std::shared_ptr<std::exception_ptr> failure);

  const StatementContext context_;
  TensorStore tensors_;
  StreamOrder streams_;
  ModuleNames names_;
  TensorChecks checks_;
  Locations locations_;
  GradientTape tape_;
  BackwardWalk backward_;
  ExpressionValues expressions_;
  StartedWork started_;
  ThreadCalls threads_;
  CommunicationStatements communication_;
  DeviceStatements device_;
  int calls_open_ = 0;          ///< of functions, one inside the other
  int32_t guards_ = 0;          ///< an `if` around an `if` counts twice
  size_t threads_started_ = 0;  ///< by all statements
};

}  // namespace lockstep
