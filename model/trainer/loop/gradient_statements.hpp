#pragma once

#include "model/trainer/loop/batch_runner.hpp"
#include "model/trainer/loop/trained_model.hpp"
#include "model/trainer/scheduler/schedulers.hpp"

namespace lockstep {

/// The statements of one rank by which a program optimizes by hand, and those that say which
/// gradients are exchanged.
class GradientStatements {
 public:
  /// All outlive the statements.
  GradientStatements(const TrainingContext& context, const HookRunner& hooks, BatchRunner& batches,
                     const TrainedModel& model, Schedulers& schedulers);

  static bool runs(StatementKind kind);
  Task<Flow> run(const Statement& statement, Frame& frame);

 private:
  Program backward(const Statement& statement, Frame& frame);
  Program clip(const Statement& statement, Frame& frame);
  Program step_scheduler(const Statement& statement, Frame& frame);
  Task<Flow> toggle_model(const Statement& statement, Frame& frame);
  Task<Flow> without_sync(const Statement& statement, Frame& frame, bool without);
  Program switch_gradient_sync(const Statement& statement, Frame& frame);

  const TrainingProgram& program_;
  Strategy& strategy_;
  Interpreter& interpreter_;
  const HookRunner& hooks_;
  BatchRunner& batches_;
  const TrainedModel& model_;
  Schedulers& schedulers_;
};

}  // namespace lockstep
