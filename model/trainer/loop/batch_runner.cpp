#include "model/trainer/loop/batch_runner.hpp"

#include <algorithm>

#include "model/scenario/expressions_of.hpp"
#include "model/trainer/loop/repeated_loop.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

using Kind = StatementKind;

/// Of columns, by all ranks together.
constexpr int64_t most_numbers_kept = int64_t{1} << 22;

}  // namespace

BatchRunner::BatchRunner(const TrainingContext& context, const TrainerMembership& membership,
                         HookRunner& hooks, const OptimizerRates& rates, Progress& progress)
    : program_(context.program),
      strategy_(context.strategy),
      interpreter_(context.interpreter),
      membership_(membership),
      hooks_(hooks),
      progress_(progress),
      batch_(most_numbers_kept / std::max(1, context.rank.world_size()), context.rank.place()),
      switches_(context.program.trainer.automatic_optimization),
      graphs_(context.rank, context.strategy, context.interpreter.names()),
      forward_(context, {batch_, switches_, graphs_, tally_}),
      step_hooks_(context, hooks, progress, batch_, graphs_, forward_),
      optimizers_(context, hooks, rates, progress, {batch_, switches_, graphs_, tally_}) {}

Program BatchRunner::train(bool steps, bool begins_window) {
  interpreter_.tape().begin_graph();
  forward_.begin_batch();
  batch_.set_trains(true);
  begin_training(steps);
  if (program_.trainer.automatic_optimization) {
    closure_ = Closure{begins_window, false};
    co_await optimize(steps);
    closure_.reset();
  } else {
    Frame frame;
    co_await step_hooks_.step("training_step", frame);
    co_await step_hooks_.end_step("training_step_end", frame);
    hooks_.leave("training_step", frame);
  }
  switches_.end_batch();
  batch_.set_trains(false);
  forward_.end_batch();
  graphs_.drop_all();
}

void BatchRunner::begin_training(bool steps) {
  const bool automatic = program_.trainer.automatic_optimization;
  const int64_t window = program_.trainer.accumulate_grad_batches;
  bool engine_steps = !automatic || steps;
  if (automatic && program_.accumulates_itself) {
    engine_steps = tally_.count_micro_batch() % window == 0;
  }
  double loss_factor = automatic ? 1.0 / static_cast<double>(window) : 1.0;
  if (automatic && program_.accumulates_itself) {
    loss_factor /= static_cast<double>(window);  // the engine divides what Lightning has divided
  }
  switches_.begin_batch(engine_steps, engine_steps || !strategy_.accumulates_without_exchange(),
                        loss_factor,
                        !program_.repetition.micro_batches || is_between_kept(program_, progress_));
  tally_.note_batch(membership_.counts_samples ? batch_.batch().size() : 0);
}

Program BatchRunner::evaluate(std::string_view step_hook) {
  forward_.begin_batch();
  batch_.set_trains(false);
  Frame frame;
  co_await step_hooks_.step(step_hook, frame);
  const std::string step_end = std::string(step_hook) + "_end";
  co_await step_hooks_.end_step(step_end, frame);
  hooks_.leave(step_hook, frame);
  forward_.end_batch();
}

// The hook `optimizer_step` is given the closure, and has to run it. Where the strategy
// accumulates, it is called in every batch (loops/optimization/automatic.py).
Program BatchRunner::optimize(bool steps) {
  if (!steps && !program_.accumulates_itself) {
    co_await run_closure();
    co_return;
  }
  co_await hooks_.begin("optimizer_step");
  if (hooks_.has("optimizer_step")) {
    Frame frame;
    co_await hooks_.run_body("optimizer_step", frame);
    hooks_.leave("optimizer_step", frame);
  } else {
    co_await run_closure();
    co_await optimizers_.update(0, no_site, closure_->has_loss);
  }
  if (steps) {
    optimizers_.count_step();
  }
  if (!closure_->has_run) {
    throw ProgramException(site_of(hooks_.find("optimizer_step")->place),
                           "The closure hasn't been executed");
  }
}

// training_step, zero_grad, backward.
Program BatchRunner::run_closure() {
  closure_->has_run = true;
  const Hook* const own = hooks_.find("training_step");
  const bool has_backward =
      own != nullptr &&
      find_reached_statement(*program_.scenario->program, *own, Kind::backward) != nullptr;
  const bool fills_gradients = has_backward || program_.backward_in_forward;
  if (fills_gradients && closure_->begins_window) {
    // A backward inside the hook fills gradients that zero_grad must not wipe out after it.
    co_await optimizers_.zero_grad_by_hook();
  }
  Frame frame;
  const Flow flow = co_await step_hooks_.step("training_step", frame);
  const bool has_loss = flow == Flow::next && forward_.is_done();
  if (!has_loss) {
    check_may_skip(own);
  }
  closure_->has_loss = has_loss || has_backward;
  co_await step_hooks_.end_step("training_step_end", frame);
  if (!has_backward) {
    if (!fills_gradients && closure_->begins_window) {
      co_await optimizers_.zero_grad_by_hook();
    }
    if (has_loss) {
      BackwardStart start = co_await step_hooks_.start_of_returned("training_step", frame);
      co_await optimizers_.backward(std::move(start), no_site);
    }
  }
  hooks_.leave("training_step", frame);
}

// The others would wait for this rank's gradients.
void BatchRunner::check_may_skip(const Hook* training_step) const {
  if (membership_.trainers <= 1 || program_.trainer.lightning < Version{2, 3, 0}) {
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

Program BatchRunner::step(const Statement& statement) {
  if (closure_ && hooks_.current() == "optimizer_step") {
    co_await run_closure();
    co_await optimizers_.update(0, site_of(statement), closure_->has_loss);
  } else {
    co_await optimizers_.update(optimizers_.optimizer_of(statement), site_of(statement),
                                !closure_ || closure_->has_loss);
    optimizers_.count_step();
  }
}

Program BatchRunner::run_closure_of(const Statement& statement) {
  if (!closure_ || hooks_.current() != "optimizer_step") {
    throw ProgramException(site_of(statement),
                           "the closure exists only in the hook `optimizer_step`");
  }
  co_await run_closure();
}

}  // namespace lockstep
