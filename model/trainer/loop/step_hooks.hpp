#pragma once

#include <optional>
#include <string_view>

#include "model/trainer/loop/hook_runner.hpp"
#include "model/trainer/loop/model_forward.hpp"
#include "model/trainer/loop/progress.hpp"

namespace lockstep {

/// The step hooks of batches on one rank, on copies of the module where the strategy has them, and
/// what they return.
class StepHooks {
 public:
  /// All outlive the hooks.
  StepHooks(const TrainingContext& context, HookRunner& hooks, Progress& progress,
            BatchUnderWay& batch, ForwardGraphs& graphs, ModelForward& forward);

  /// A step hook of the user; forward is put first where it has none.
  Task<Flow> step(std::string_view hook, Frame& frame);
  /// The hook of 1.x behind a step, with what it gives.
  Program end_step(std::string_view hook, Frame& frame);
  /// d(what the step hook returns) / d(the loss of its forward, or its output).
  Task<BackwardStart> start_of_returned(std::string_view hook, const Frame& frame);
  /// What the steps of an epoch have returned, for the epoch-end hooks of 1.x.
  Variable::List& outputs() { return outputs_; }

 private:
  Task<Flow> run_step(std::string_view hook, Frame& frame);
  bool holds_forward(std::string_view hook) const;
  Task<Flow> step_on_copies(std::string_view hook, Frame& frame, bool once);
  Program note_factor(std::string_view hook, const Frame& names);
  Variable gathered(const Variable::List& returned);

  Rank& rank_;
  const TrainingProgram& program_;
  RankLog& log_;
  Strategy& strategy_;
  Interpreter& interpreter_;
  HookRunner& hooks_;
  Progress& progress_;
  BatchUnderWay& batch_;
  ForwardGraphs& graphs_;
  ModelForward& forward_;
  std::optional<double> factor_of_copies_;  ///< what the hooks of all copies have returned
  Variable::List outputs_;
};

}  // namespace lockstep
