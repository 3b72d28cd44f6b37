#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "model/trainer/loop/loader_calls.hpp"
#include "model/trainer/loop/logger_rows.hpp"
#include "model/trainer/loop/period_tally.hpp"
#include "model/trainer/loop/trainer_statements.hpp"

namespace lockstep {

/// Lightning's Trainer on one rank: the order of its stages, and the parts that loops, callbacks
/// and schedulers call.
class Training {
 public:
  Training(Rank& rank, const TrainingProgram& program);

  /// The script, or on a server what the strategy does there.
  Program run_main();

  Rank& rank() { return rank_; }
  const TrainingProgram& program() const { return program_; }
  RankLog& log() { return log_; }
  const TrainerMembership& membership() const { return membership_; }
  bool distributed() const { return collectives_.distributed(); }
  Strategy& strategy() { return *strategy_; }
  Interpreter& interpreter() { return interpreter_; }
  TrainerCollectives& collectives() { return collectives_; }
  Termination& termination() { return termination_; }
  HookRunner& hooks() { return hooks_; }
  OptimizerRates& rates() { return rates_; }
  Callbacks& callbacks() { return callbacks_; }
  Schedulers& schedulers() { return schedulers_; }
  LoaderCalls& loaders() { return loaders_; }
  LoggerRows& logger_rows() { return rows_; }
  BatchRunner& batches() { return batches_; }
  TrainedModel& model() { return model_; }
  FitCheckpoints& checkpoints() { return checkpoints_; }
  TrainerStatements& statements() { return statements_; }
  TrainingPeriods& periods() { return periods_; }

  /// Hooks, of which HookRunner says more.
  Task<Flow> hook(std::string_view name) { return hooks_.run(name); }
  Program hook_of_1_x(std::string_view name) { return hooks_.run_of_1_x(name); }
  Program hook_with_outputs(std::string_view name) {
    return hooks_.run_with_outputs(name, outputs());
  }
  /// Of the epoch, for the epoch-end hooks of 1.x.
  Variable::List& outputs() { return batches_.step_hooks().outputs(); }
  /// The hooks around a batch's way to its device, where the user has them.
  Program transfer_batch();
  /// Reports to the world that the next training epoch begins.
  Program begin_epoch();

  /// Runs what precedes the loop of a stage: barriers, hooks, the strategy's setup.
  Program begin_stage(Stage stage);
  /// Runs what is between a stage's set-up and its loop: barriers, and the handlers of signals.
  Program begin_loop();
  /// The strategy's teardown, and the hooks after it.
  Program end_stage();
  Stage stage() const { return stage_; }
  /// Returns the sites of the current stage.
  const TrainerSites& sites() const;

  /// Adds what is kept from one batch to the next beside what is counted.
  void remember(ProgramMemory& memory) const;
  bool has_validation() const;
  /// Some validation of this fit, beyond the sanity check, has come to its end.
  bool has_validated() const { return has_validated_; }
  void note_validation() { has_validated_ = true; }
  /// Puts what the fit has logged on_step into callback_metrics, where something may monitor it.
  Program publish_step_metrics();
  /// should_stop counts: min_epochs and min_steps have been reached.
  bool can_stop_early() const;

  Progress progress;
  LoggedResults* results = nullptr;  ///< of the loop that runs now

 private:
  TrainingContext context() { return {rank_, program_, log_, *strategy_, interpreter_}; }
  /// `main`, or `fit` where the scenario has none.
  Program run_script();
  /// `fit`, `validate`, `test` or `predict` of the script.
  Program run_stage(StatementKind kind);

  Rank& rank_;
  const TrainingProgram& program_;
  RankLog& log_;
  TrainerMembership membership_;
  std::unique_ptr<Strategy> strategy_;
  Interpreter interpreter_;
  TrainerCollectives collectives_;
  Termination termination_;
  HookRunner hooks_;
  OptimizerRates rates_;
  Callbacks callbacks_;
  Schedulers schedulers_;
  LoaderCalls loaders_;
  LoggerRows rows_;
  BatchRunner batches_;
  TrainedModel model_;
  FitCheckpoints checkpoints_;
  TrainerStatements statements_;
  TrainingPeriods periods_;
  Stage stage_ = Stage::fit;
  bool has_validated_ = false;
};

}  // namespace lockstep
