#include "model/trainer/loop/optimizer_steps.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/strategy/local_model/replica.hpp"
#include "model/trainer/loop/shown_parameters.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

OptimizerSteps::OptimizerSteps(const TrainingContext& context, HookRunner& hooks,
                               const OptimizerRates& rates, Progress& progress,
                               const ModelForward::Surroundings& forward)
    : rank_(context.rank),
      program_(context.program),
      log_(context.log),
      strategy_(context.strategy),
      streams_(context.interpreter.streams()),
      hooks_(hooks),
      rates_(rates),
      progress_(progress),
      batch_(forward.batch),
      switches_(forward.switches),
      graphs_(forward.graphs),
      tally_(forward.tally) {
  if (program_.scales_loss) {
    loss_scale_.emplace();
    loss_scale_->stand_for(program_.scales_for);
  }
}

Program OptimizerSteps::backward(BackwardStart start, SiteId site) {
  if (start.has_last && graphs_.use_up_last()) {
    throw ProgramException(site, "Trying to backward through the graph a second time");
  }
  if (!clippings_.empty()) {
    lack_at(log_, site, "a backward between clip_gradients and optimizer_step is not modelled");
  }
  if (program_.backward_in_forward && (start.of_loss != 1 || !start.of_output.empty())) {
    lack_at(log_, site,
            "a pipeline whose step returns something else than its loss is not "
            "modelled",
            "return the loss as it is");
  }
  StepOptions options = switches_.options(batch_.trains());
  if (graphs_.keeps_earlier()) {
    strategy_.replica().forwards().go_back_through(graphs_.take_passes(start));
  } else {
    options.loss_factor *= start.of_output.empty() ? start.of_loss : 1;
    options.output_gradient = std::move(start.of_output);
  }
  if (loss_scale_) {
    options.loss_factor *= loss_scale_->scale_loss();
  }
  co_await hooks_.run("on_before_backward");
  if (!has_gradients_to_compute(options)) {
    throw ProgramException(
        site, "element 0 of tensors does not require grad and does not have a grad_fn");
  }
  streams_.hand_over_compute();
  co_await strategy_.backward(rank_, options);
  if (strategy_.replica().forwards().has_passes()) {
    lack_at(log_, site,
            fmt::format("a backward through several forwards is not modelled by "
                        "the strategy {}",
                        strategy_.name()));
  }
  note_gradients();
  co_await hooks_.run("on_after_backward");
}

// Of what the forward ran; earlier forwards, which a backward may go through too, are not looked
// at.
bool OptimizerSteps::has_gradients_to_compute(const StepOptions& options) {
  const std::vector<Layer>& layers = program_.network->layers;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer].has_trainable_parameters() &&
        (graphs_.keeps_earlier() || strategy_.replica().runs(layer, options))) {
      return true;
    }
  }
  return false;
}

void OptimizerSteps::note_gradients() {
  for (size_t optimizer = 0; optimizer < program_.plan.optimizers.size(); ++optimizer) {
    if (!switches_.toggled() || *switches_.toggled() == optimizer) {
      has_gradients_.insert(optimizer);
    }
  }
}

Program OptimizerSteps::update(size_t optimizer, SiteId site, bool has_loss) {
  UpdateOptions before_hook;
  before_hook.optimizer = optimizer;
  if (const auto asked = clippings_.find(optimizer); asked != clippings_.end()) {
    before_hook.clipping = asked->second.how;
  }
  if (switches_.engine_steps()) {
    co_await strategy_.complete_gradients(rank_, before_hook);
  }
  co_await hooks_.run("on_before_optimizer_step");
  if (program_.trainer.automatic_optimization) {
    const GradientClipping& of_trainer = program_.trainer.gradient_clipping;
    if (!hooks_.has("configure_gradient_clipping") &&
        of_trainer.algorithm != GradientClipping::Algorithm::none) {
      clippings_[optimizer] = {of_trainer, no_site};
    }
    co_await hooks_.run("configure_gradient_clipping");
  }
  // MixedPrecision leaves out a step for which there was no backward; without a scaler the
  // optimizer would step.
  const bool leaves_out = loss_scale_ && !has_loss;
  if (!switches_.engine_steps() || leaves_out) {
    clippings_.erase(optimizer);
    co_return;
  }
  streams_.hand_over_compute();
  UpdateOptions options;
  options.optimizer = optimizer;
  const Clipping clipping = clipping_of_step(optimizer);
  options.clipping = clipping.how;
  options.learning_rate = rates_.learning_rate(options.optimizer);
  options.momentum = rates_.scheduled_momentum(optimizer);
  options.loss_scale = loss_scale_ ? &*loss_scale_ : nullptr;
  log_.add(WeightUpdate{optimizer_name(optimizer), *options.learning_rate, clipping.how,
                        has_gradients_.contains(optimizer), site, clipping.site, 1,
                        tally_.take_batches()});
  co_await strategy_.optimizer_step(rank_, options);
  if (program_.keeps_parameters) {
    show_parameters(strategy_, log_);
  }
  rank_.choose(site, ChoiceKind::step, 1, 0);
  log_.transfers = strategy_.transfers_per_step();
  tally_.note_update(log_);
}

// What the strategy's own configuration fixes applies in every step: the strategy sees to that by
// itself, also without a trainer, and the log of updates has to say the same.
OptimizerSteps::Clipping OptimizerSteps::clipping_of_step(size_t optimizer) {
  const Clipping asked = std::exchange(clippings_[optimizer], Clipping{});
  clippings_.erase(optimizer);
  if (const auto configured = strategy_.configured_clipping()) {
    return {*configured, no_site};
  }
  if (program_.manual_clipping == ManualClipping::ignored) {
    return {program_.trainer.gradient_clipping, no_site};
  }
  const bool asks = asked.how.algorithm != GradientClipping::Algorithm::none;
  return asks || !program_.clips_as ? asked : Clipping{*program_.clips_as, no_site};
}

void OptimizerSteps::count_step() {
  ++progress_.global_step;
  log_.steps = progress_.global_step;
  log_.steps_of_cycle = strategy_.steps_of_cycle(program_.trainer.accumulate_grad_batches);
}

// Of two limits of one kind the lower one is left of both.
void OptimizerSteps::clip_at_step(size_t optimizer, const GradientClipping& how, SiteId site) {
  Clipping& asked = clippings_[optimizer];
  const bool clips_already = asked.how.algorithm != GradientClipping::Algorithm::none;
  if (clips_already && asked.how.algorithm != how.algorithm) {
    lack_at(log_, site, "clipping by norm and by value in one step is not modelled");
  }
  if (!clips_already || how.limit < asked.how.limit) {
    asked = {how, site};
  }
}

Program OptimizerSteps::zero_grad(size_t optimizer, bool set_to_none) {
  clippings_.erase(optimizer);
  has_gradients_.erase(optimizer);
  streams_.hand_over_compute();
  co_await strategy_.zero_gradients(rank_, optimizer, set_to_none);
}

Program OptimizerSteps::zero_grad_by_hook() {
  co_await hooks_.run("on_before_zero_grad");
  if (!hooks_.has("optimizer_zero_grad")) {
    co_await zero_grad(0, program_.plan.optimizers.front().set_to_none);
  }
  co_await hooks_.run("optimizer_zero_grad");
}

Program OptimizerSteps::release_gradients(bool by_hook, Stage stage) {
  if (by_hook) {
    co_await hooks_.run("on_validation_model_zero_grad");
  }
  if (stage != Stage::fit || (by_hook && hooks_.has("on_validation_model_zero_grad"))) {
    co_return;
  }
  for (size_t optimizer = 0; optimizer < program_.plan.optimizers.size(); ++optimizer) {
    co_await zero_grad(optimizer, program_.settings.torch >= Version{2, 0, 0});
  }
}

std::string OptimizerSteps::optimizer_name(size_t optimizer) const {
  const std::vector<std::string>& names = program_.optimizer_names;
  return optimizer < names.size() ? names[optimizer] : std::string();
}

size_t OptimizerSteps::optimizer_of(const Statement& statement) const {
  if (!statement.optimizer) {
    return 0;
  }
  const std::vector<std::string>& names = program_.optimizer_names;
  const auto found = std::find(names.begin(), names.end(), statement.optimizer->value);
  ensure(found != names.end(), "a named optimizer is one of the scenario");
  return static_cast<size_t>(found - names.begin());
}

}  // namespace lockstep
