#pragma once

#include <optional>
#include <string_view>

#include "model/trainer/loop/optimizer_steps.hpp"
#include "model/trainer/loop/step_hooks.hpp"

namespace lockstep {

/// Runs batches on one rank: those of an evaluation, and those of training in the order of
/// automatic optimization, or of the program's own.
class BatchRunner {
 public:
  /// All outlive the runner. `membership`: of this rank.
  BatchRunner(const TrainingContext& context, const TrainerMembership& membership,
              HookRunner& hooks, const OptimizerRates& rates, Progress& progress);

  /// One training batch, which has been entered: forward, backward, update. All but the batch that
  /// ends an accumulation window run without synchronisation.
  Program train(bool steps, bool begins_window);
  Program evaluate(std::string_view step_hook);
  /// `optimizer.step(closure)` within the hook `optimizer_step`; elsewhere the program's own step.
  Program step(const Statement& statement);
  /// `optimizer_closure()`, without a step.
  Program run_closure_of(const Statement& statement);

  BatchUnderWay& batch() { return batch_; }
  StepSwitches& switches() { return switches_; }
  UpdateTally& tally() { return tally_; }
  const UpdateTally& tally() const { return tally_; }
  ForwardGraphs& graphs() { return graphs_; }
  ModelForward& forward() { return forward_; }
  StepHooks& step_hooks() { return step_hooks_; }
  OptimizerSteps& optimizers() { return optimizers_; }

 private:
  /// The closure that automatic optimization passes to the optimizer's step.
  struct Closure {
    bool begins_window = false;  ///< of accumulation
    bool has_run = false;
    bool has_loss = true;  ///< training_step has returned one, or has called backward itself
  };
  void begin_training(bool steps);
  Program optimize(bool steps);
  Program run_closure();
  void check_may_skip(const Hook* training_step) const;

  const TrainingProgram& program_;
  Strategy& strategy_;
  Interpreter& interpreter_;
  const TrainerMembership& membership_;
  HookRunner& hooks_;
  const Progress& progress_;
  BatchUnderWay batch_;
  StepSwitches switches_;
  UpdateTally tally_;
  ForwardGraphs graphs_;
  ModelForward forward_;
  StepHooks step_hooks_;
  OptimizerSteps optimizers_;
  std::optional<Closure> closure_;  ///< of the batch that runs
};

}  // namespace lockstep
