#pragma once

#include <string>
#include <string_view>

#include "model/trainer/loop/termination.hpp"
#include "model/user_program/interpreter.hpp"

namespace lockstep {

/// Runs the user's hooks on one rank. Every hook is a position of the program that the world hears
/// of, whether or not the user has written it, and where a signal that has come is handled.
class HookRunner {
 public:
  /// All outlive the runner.
  HookRunner(const TrainingProgram& program, Interpreter& interpreter, Termination& termination);

  /// Whether the user has written a hook. Null: not.
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Hook* find(std::string_view name) const;
  /// The hook that runs now; empty: none.
  const std::string& current() const { return current_; }

  /// Reports to the world that the next training epoch, or a batch of the next step, begins.
  Program begin_epoch(int64_t epoch);
  Program begin_step(int64_t step);
  /// Reports that a hook begins. What it does is `run_body`, or somebody else's.
  Program begin(std::string_view name);
  Task<Flow> run_body(std::string_view name, Frame& frame);

  /// Runs a hook, if there is one, with names that die with it.
  Task<Flow> run(std::string_view name);
  /// Like run, with names that outlive it, for steps.
  Task<Flow> run_with(std::string_view name, Frame& frame);
  /// Said where a hook has ended: what only its names hold is gone.
  void leave(std::string_view name, Frame& frame);
  /// Like run, with `outputs` bound, for the epoch-end hooks of 1.x.
  Program run_with_outputs(std::string_view name, Variable::List outputs);
  /// The hooks of epochs and batches of any kind, which 1.8 removed.
  Program run_of_1_x(std::string_view name);

 private:
  Program stand_at(Position position);

  const TrainingProgram& program_;
  Interpreter& interpreter_;
  Termination& termination_;
  std::string current_;
  Position position_;
};

}  // namespace lockstep
