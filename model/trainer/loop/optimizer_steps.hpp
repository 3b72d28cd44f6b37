#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "model/strategy/local_model/loss_scale.hpp"
#include "model/trainer/loop/hook_runner.hpp"
#include "model/trainer/loop/model_forward.hpp"
#include "model/trainer/loop/optimizer_rates.hpp"
#include "model/trainer/loop/progress.hpp"

namespace lockstep {

/// Gradients and weights of one rank: backward, clipping, the steps of optimizers and their
/// zero_grad, each with the hooks that Lightning calls around it.
class OptimizerSteps {
 public:
  /// `forward`: as a forward has them. All outlives the steps.
  OptimizerSteps(const TrainingContext& context, HookRunner& hooks, const OptimizerRates& rates,
                 Progress& progress, const ModelForward::Surroundings& forward);

  /// Runs backward from `start`: a multiple of the loss, or what the program made of the output.
  Program backward(BackwardStart start, SiteId site);
  /// Updates what the optimizer holds. `site`: of the statement that asks for it. `has_loss`: not
  /// where automatic optimization had nothing to go back from.
  Program update(size_t optimizer, SiteId site, bool has_loss);
  /// Counts a step of the training.
  void count_step();
  /// Clips just before the optimizer's step: nothing looks at the gradients in between.
  void clip_at_step(size_t optimizer, const GradientClipping& how, SiteId site);
  Program zero_grad(size_t optimizer, bool set_to_none);
  /// Lightning's own zero_grad, which the hook `optimizer_zero_grad` replaces.
  Program zero_grad_by_hook();
  /// The zero_grad before a validation; from 2.1 on the hook on_validation_model_zero_grad may take
  /// its place.
  Program release_gradients(bool by_hook, Stage stage);

  /// The optimizer that a statement names, by its index in the plan; by default the first.
  size_t optimizer_of(const Statement& statement) const;
  /// The trainer's or the strategy's; null: losses are not scaled.
  const LossScale* loss_scale() const {
    return loss_scale_ ? &*loss_scale_ : strategy_.loss_scale();
  }
  /// Of the precision plugin, under 16-mixed.
  std::optional<LossScale>& own_loss_scale() { return loss_scale_; }

 private:
  struct Clipping {
    GradientClipping how{};
    SiteId site{};  ///< of the statement that asks for it
  };
  bool has_gradients_to_compute(const StepOptions& options);
  void note_gradients();
  Clipping clipping_of_step(size_t optimizer);
  std::string optimizer_name(size_t optimizer) const;

  Rank& rank_;
  const TrainingProgram& program_;
  RankLog& log_;
  Strategy& strategy_;
  StreamOrder& streams_;
  HookRunner& hooks_;
  const OptimizerRates& rates_;
  Progress& progress_;
  const BatchUnderWay& batch_;
  const StepSwitches& switches_;
  ForwardGraphs& graphs_;
  UpdateTally& tally_;
  std::optional<LossScale> loss_scale_;
  std::map<size_t, Clipping> clippings_;  ///< of the next step, by optimizer
  std::set<size_t> has_gradients_;        ///< optimizers whose gradients are not None or 0
};

}  // namespace lockstep
