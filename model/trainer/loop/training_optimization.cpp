// The effect of a training batch on the weights, and the hooks that may replace it
// (loops/optimization/automatic.py, plugins/precision/precision.py, core/module.py).
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/scenario/expressions_of.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/trainer/loop/shown_parameters.hpp"
#include "model/trainer/loop/training.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

using Kind = StatementKind;

// All but the batch that ends an accumulation window run without synchronisation.
Program Training::training_batch(bool steps, bool begins_window) {
  interpreter_.begin_graph();
  forward_done_ = false;
  entered_wrapper_ = false;
  training_ = true;
  const bool automatic = program_.trainer.automatic_optimization;
  const int64_t window = program_.trainer.accumulate_grad_batches;
  engine_steps_ = !automatic || steps;
  if (automatic && program_.accumulates_itself) {
    engine_steps_ = ++micro_batches_ % window == 0;
  }
  synchronise_ = engine_steps_ || !strategy_->accumulates_without_exchange();
  samples_since_update_ += membership_.counts_samples ? batch_->size() : 0;
  ++batches_since_update_;
  loss_factor_ = automatic ? 1.0 / static_cast<double>(window) : 1.0;
  if (automatic && program_.accumulates_itself) {
    loss_factor_ /= static_cast<double>(window);  // the engine divides what Lightning has divided
  }
  if (automatic) {
    closure_ = Closure{begins_window, false};
    co_await optimize(steps);
    closure_.reset();
  } else {
    Frame frame;
    co_await step("training_step", frame);
    co_await end_step("training_step_end", frame);
    leave_hook("training_step", frame);
  }
  synchronise_ = true;
  training_ = false;
  forward_done_ = false;
  drop_forwards();
}

// The hook `optimizer_step` is given the closure, and has to run it. Where the strategy
// accumulates, it is called in every batch (loops/optimization/automatic.py).
Program Training::optimize(bool steps) {
  if (!steps && !program_.accumulates_itself) {
    co_await run_closure();
    co_return;
  }
  co_await begin_hook("optimizer_step");
  if (has_hook("optimizer_step")) {
    Frame frame;
    co_await run_hook("optimizer_step", frame);
    leave_hook("optimizer_step", frame);
  } else {
    co_await run_closure();
    co_await update(0, no_site);
  }
  if (steps) {
    count_step();
  }
  if (!closure_->has_run) {
    throw ProgramException(site_of(program_.scenario->program->find("optimizer_step")->place),
                           "The closure hasn't been executed");
  }
}

// training_step, zero_grad, backward.
Program Training::run_closure() {
  closure_->has_run = true;
  const Hook* const own =
      program_.scenario->program ? program_.scenario->program->find("training_step") : nullptr;
  const bool has_backward =
      own != nullptr &&
      find_reached_statement(*program_.scenario->program, *own, Kind::backward) != nullptr;
  const bool fills_gradients = has_backward || program_.backward_in_forward;
  if (fills_gradients && closure_->begins_window) {
    // A backward inside the hook fills gradients that zero_grad must not wipe out after it.
    co_await zero_grad_by_hook();
  }
  Frame frame;
  const Flow flow = co_await step("training_step", frame);
  const bool has_loss = flow == Flow::next && forward_done_;
  if (!has_loss) {
    check_may_skip(own);
  }
  closure_->has_loss = has_loss || has_backward;
  co_await end_step("training_step_end", frame);
  if (!has_backward) {
    if (!fills_gradients && closure_->begins_window) {
      co_await zero_grad_by_hook();
    }
    if (has_loss) {
      BackwardStart start = co_await start_of_returned("training_step", frame);
      co_await backward(std::move(start), no_site);
    }
  }
  leave_hook("training_step", frame);
}

// Automatic optimization calls backward on what training_step returns. What training_step_end
// of 1.x makes of it counts as its loss itself.
Task<BackwardStart> Training::start_of_returned(std::string_view hook, const Frame& frame) {
  BackwardStart start;
  start.of_loss = factor_of_copies_.value_or(1);
  const auto loss = frame.find("loss");
  if (factor_of_copies_ || loss == frame.end() || has_hook(std::string(hook) + "_end")) {
    co_return start;
  }
  const Hook* own = program_.scenario->program ? program_.scenario->program->find(hook) : nullptr;
  const SiteId site = own == nullptr ? no_site : site_of(own->place);
  start = co_await interpreter_.gradient_of(loss->second.gradient, results_of_forwards(), site);
  co_return start;
}

// The others would wait for this rank's gradients.
void Training::check_may_skip(const Hook* training_step) const {
  if (!distributed() || program_.trainer.lightning < Version{2, 3, 0}) {
    return;
  }
  const Statement* const left =
      training_step == nullptr ? nullptr : find_statement(*training_step, Kind::return_hook);
  const SiteId site = left != nullptr            ? site_of(*left)
                      : training_step == nullptr ? no_site
                                                 : site_of(training_step->place);
  throw ProgramException(site,
                         "Skipping the `training_step` by returning None in distributed training "
                         "is not supported (Lightning from 2.3 on)");
}

Program Training::backward(BackwardStart start, SiteId site) {
  if (start.has_last && std::exchange(graph_is_gone_, true)) {
    throw ProgramException(site, "Trying to backward through the graph a second time");
  }
  if (!clippings_.empty()) {
    interpreter_.lack(site, "a backward between clip_gradients and optimizer_step is not modelled");
  }
  if (program_.backward_in_forward && (start.of_loss != 1 || !start.of_output.empty())) {
    interpreter_.lack(site,
                      "a pipeline whose step returns something else than its loss is not "
                      "modelled",
                      "return the loss as it is");
  }
  StepOptions options = step_options();
  if (!kept_forwards_.empty()) {
    strategy_->replica().go_back_through(passes_of(start));
    std::erase_if(kept_forwards_,
                  [&](const KeptForward& kept) { return start.earlier.contains(kept.number); });
  } else {
    options.loss_factor *= start.of_output.empty() ? start.of_loss : 1;
    options.output_gradient = std::move(start.of_output);
  }
  if (loss_scale_) {
    options.loss_factor *= loss_scale_->scale_loss();
  }
  co_await hook("on_before_backward");
  if (!has_gradients_to_compute(options)) {
    throw ProgramException(
        site, "element 0 of tensors does not require grad and does not have a grad_fn");
  }
  interpreter_.hand_over_compute_stream();
  co_await strategy_->backward(rank_, options);
  if (strategy_->replica().has_passes()) {
    interpreter_.lack(site, fmt::format("a backward through several forwards is not modelled by "
                                        "the strategy {}",
                                        strategy_->name()));
  }
  note_gradients();
  co_await hook("on_after_backward");
}

// Of what the forward ran; earlier forwards, which a backward may go through too, are not looked
// at.
bool Training::has_gradients_to_compute(const StepOptions& options) {
  const std::vector<Layer>& layers = program_.network->layers;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    if (layers[layer].has_trainable_parameters() &&
        (!kept_forwards_.empty() || strategy_->replica().runs(layer, options))) {
      return true;
    }
  }
  return false;
}

void Training::note_gradients() {
  for (size_t optimizer = 0; optimizer < program_.plan.optimizers.size(); ++optimizer) {
    if (!toggled_ || *toggled_ == optimizer) {
      has_gradients_.insert(optimizer);
    }
  }
}

std::string Training::optimizer_name(size_t optimizer) const {
  const std::vector<std::string>& names = program_.optimizer_names;
  return optimizer < names.size() ? names[optimizer] : std::string();
}

size_t Training::optimizer_of(const Statement& statement) const {
  if (!statement.optimizer) {
    return 0;
  }
  const std::vector<std::string>& names = program_.optimizer_names;
  const auto found = std::find(names.begin(), names.end(), statement.optimizer->value);
  ensure(found != names.end(), "a named optimizer is one of the scenario");
  return static_cast<size_t>(found - names.begin());
}

// `optimizer.step(closure)` within the hook `optimizer_step`; elsewhere the program's own step.
Program Training::step_of(const Statement& statement) {
  if (closure_ && hook_ == "optimizer_step") {
    co_await run_closure();
    co_await update(0, site_of(statement));
  } else {
    co_await update(optimizer_of(statement), site_of(statement));
    count_step();
  }
}

// `optimizer_closure()`, without a step.
Program Training::closure_of(const Statement& statement) {
  if (!closure_ || hook_ != "optimizer_step") {
    throw ProgramException(site_of(statement),
                           "the closure exists only in the hook `optimizer_step`");
  }
  co_await run_closure();
}

Program Training::update(size_t optimizer, SiteId site) {
  UpdateOptions before_hook;
  before_hook.optimizer = optimizer;
  if (const auto asked = clippings_.find(optimizer); asked != clippings_.end()) {
    before_hook.clipping = asked->second.how;
  }
  if (engine_steps_) {
    co_await strategy_->complete_gradients(rank_, before_hook);
  }
  co_await hook("on_before_optimizer_step");
  if (program_.trainer.automatic_optimization) {
    if (!has_hook("configure_gradient_clipping")) {
      clippings_[optimizer] = {program_.trainer.gradient_clipping, no_site};
    }
    co_await hook("configure_gradient_clipping");
  }
  // MixedPrecision leaves out a step for which there was no backward; without a scaler the
  // optimizer would step.
  const bool leaves_out = loss_scale_ && closure_ && !closure_->has_loss;
  if (!engine_steps_ || leaves_out) {
    clippings_.erase(optimizer);
    co_return;
  }
  interpreter_.hand_over_compute_stream();
  UpdateOptions options;
  options.optimizer = optimizer;
  const Clipping clipping = clipping_of_step(optimizer);
  options.clipping = clipping.how;
  options.learning_rate = learning_rate(options.optimizer);
  if (const auto momentum = momenta_.find(optimizer); momentum != momenta_.end()) {
    options.momentum = momentum->second;
  }
  options.loss_scale = loss_scale_ ? &*loss_scale_ : nullptr;
  log_.add(WeightUpdate{optimizer_name(optimizer), *options.learning_rate, clipping.how,
                        has_gradients_.contains(optimizer), site, clipping.site, 1,
                        std::exchange(batches_since_update_, 0)});
  co_await strategy_->optimizer_step(rank_, options);
  if (program_.keeps_parameters) {
    show_parameters(*strategy_, log_);
  }
  rank_.choose(site, ChoiceKind::step, 1, 0);
  log_.transfers = strategy_->transfers_per_step();
  note_update();
}

// What the strategy's own configuration fixes applies in every step: the strategy sees to that by
// itself, also without a trainer, and the log of updates has to say the same.
Training::Clipping Training::clipping_of_step(size_t optimizer) {
  const Clipping asked = std::exchange(clippings_[optimizer], Clipping{});
  clippings_.erase(optimizer);
  if (const auto configured = strategy_->configured_clipping()) {
    return {*configured, no_site};
  }
  if (program_.manual_clipping == ManualClipping::ignored) {
    return {program_.trainer.gradient_clipping, no_site};
  }
  const bool asks = asked.how.algorithm != GradientClipping::Algorithm::none;
  return asks || !program_.clips_as ? asked : Clipping{*program_.clips_as, no_site};
}

// Two optimizers that step one after the other make one step of the training.
void Training::note_update() {
  if (std::exchange(forward_since_update_, false) || log_.samples_of_steps.empty()) {
    log_.samples_of_steps.push_back(0);
  }
  log_.samples_of_steps.back() += std::exchange(samples_since_update_, 0);
}

void Training::note_taken_over() {
  WeightUpdate none;
  none.takes_over = true;
  none.batches = std::exchange(batches_since_update_, 0);
  log_.add(none);
}

void Training::count_step() {
  ++progress.global_step;
  log_.steps = progress.global_step;
  log_.steps_of_cycle = strategy_->steps_of_cycle(program_.trainer.accumulate_grad_batches);
}

// Clips just before the step: nothing looks at the gradients in between.
Program Training::clip(const Statement& statement, Frame& frame) {
  using Algorithm = GradientClipping::Algorithm;
  const SiteId site = site_of(statement);
  const GradientClipping& of_trainer = program_.trainer.gradient_clipping;
  const bool trainer_clips = of_trainer.algorithm != Algorithm::none;
  GradientClipping clipping = of_trainer;
  if (statement.expression) {
    clipping.limit = co_await interpreter_.number_of(statement.expression->value, frame, site,
                                                     "`gradient_clip_val`");
  }
  clipping.algorithm = trainer_clips ? of_trainer.algorithm : Algorithm::norm;
  if (statement.algorithm) {
    const bool by_value = statement.algorithm->value == ClipAlgorithm::value;
    clipping.algorithm = by_value ? Algorithm::value : Algorithm::norm;
  }
  if (trainer_clips &&
      (clipping.limit != of_trainer.limit || clipping.algorithm != of_trainer.algorithm)) {
    throw ProgramException(site,
                           "the Trainer has a gradient_clip_val, and clip_gradients is given "
                           "another; use only one of them");
  }
  if (clipping.limit <= 0 || program_.manual_clipping == ManualClipping::ignored) {
    co_return;
  }
  if (clipping.algorithm == Algorithm::norm &&
      program_.manual_clipping == ManualClipping::norm_refused) {
    throw ProgramException(site,
                           "MisconfigurationException: `gradient_clip_algorithm='norm'` is "
                           "currently not supported by the precision plugin of this strategy");
  }
  clippings_[optimizer_of(statement)] = {clipping, site};
}

Program Training::step_scheduler(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  std::optional<int64_t> number;
  if (statement.scheduler) {
    number = statement.scheduler->value;
  }
  std::optional<double> metric;
  if (statement.expression) {
    metric = co_await interpreter_.number_of(statement.expression->value, frame, site, "`metric`");
  }
  schedulers_.step_by_program(number, metric, site);
}

// Lightning's own zero_grad, which the hook `optimizer_zero_grad` replaces.
Program Training::zero_grad_by_hook() {
  co_await hook("on_before_zero_grad");
  if (!has_hook("optimizer_zero_grad")) {
    co_await zero_grad(0, program_.plan.optimizers.front().set_to_none);
  }
  co_await hook("optimizer_zero_grad");
}

Program Training::release_gradients(bool by_hook) {
  if (by_hook) {
    co_await hook("on_validation_model_zero_grad");
  }
  if (stage_ != Stage::fit || (by_hook && has_hook("on_validation_model_zero_grad"))) {
    co_return;
  }
  for (size_t optimizer = 0; optimizer < program_.plan.optimizers.size(); ++optimizer) {
    co_await zero_grad(optimizer, program_.settings.torch >= Version{2, 0, 0});
  }
}

Program Training::zero_grad(size_t optimizer, bool set_to_none) {
  clippings_.erase(optimizer);
  has_gradients_.erase(optimizer);
  interpreter_.hand_over_compute_stream();
  co_await strategy_->zero_gradients(rank_, optimizer, set_to_none);
}

}  // namespace lockstep
