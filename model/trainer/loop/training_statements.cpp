// The statements of user code that need a trainer.
#include <fmt/core.h>

#include <utility>

#include "model/scenario/expressions_of.hpp"
#include "model/scenario/hooks.hpp"
#include "model/trainer/loop/evaluation_loop.hpp"
#include "model/trainer/loop/fit_loop.hpp"
#include "model/trainer/loop/training.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

using Kind = StatementKind;

Program Training::backward_of(const Statement& statement, Frame& frame) {
  if (!forward_done_) {
    throw ProgramException(site_of(statement), "backward without a forward before it");
  }
  BackwardStart start;
  start.of_loss = 1;
  if (statement.expression) {
    const SiteId site = site_of(statement);
    const Variable variable =
        co_await interpreter_.expressions().variable_of(statement.expression->value, frame, site);
    start = co_await interpreter_.backward().gradient_of(variable.gradient, results_of_forwards(),
                                                         site);
  }
  co_await backward(std::move(start), site_of(statement));
}

Task<Flow> Training::without_sync(const Statement& statement, Frame& frame, bool without) {
  if (const std::string refusal = without ? strategy_->no_sync_refusal() : ""; !refusal.empty()) {
    throw ProgramException(site_of(statement), refusal);
  }
  const bool outer = synchronise_;
  synchronise_ = outer && !without;
  std::exception_ptr failure;
  Flow flow = Flow::next;
  try {
    flow = co_await interpreter_.run(statement.body, frame);
  } catch (...) {  // a context manager restores what it has set
    failure = std::current_exception();
  }
  synchronise_ = outer;
  if (failure) {
    std::rethrow_exception(failure);
  }
  co_return flow;
}

// A setting of the module, which stays until it is set again.
Program Training::switch_gradient_sync(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  if (program_.settings.stands_for > 1) {
    co_return;  // one device has nobody to leave out
  }
  if (!strategy_->has_gradient_sync_switch()) {
    throw ProgramException(site,
                           "AttributeError: the module has no attribute "
                           "'set_requires_gradient_sync', which fully_shard alone gives it (use "
                           "no_sync)");
  }
  if (!is_set_up_ && hooks_.current() != "configure_model") {
    throw ProgramException(site,
                           "AttributeError: the module has no attribute "
                           "'set_requires_gradient_sync' before configure_model has called "
                           "fully_shard (set it in a later hook, such as on_fit_start)");
  }
  requires_gradient_sync_ =
      co_await interpreter_.expressions().condition_of(statement.expression->value, frame, site);
}

namespace {

/// torch's page of summon_full_params forbids them inside of it, and its code does not look.
bool needs_shards(Kind kind) {
  return (kind >= Kind::fit && kind <= Kind::optimizer_closure) || kind == Kind::clip_gradients ||
         kind == Kind::save_checkpoint || kind == Kind::state_dict;
}

}  // namespace

void Training::check_beside_whole_parameters(const Statement& statement) {
  if (has_whole_parameters_ && needs_shards(statement.kind)) {
    lack_at(log_, site_of(statement),
            fmt::format("`{}` inside of summon_full_params is not modelled: neither a "
                        "forward nor a backward may begin there",
                        name_of(statement.kind)),
            "do it before or after");
  }
}

// A wrapper that has a no_sync is that of the whole model, and Lightning calls the step hooks
// through its forward (strategies/strategy.py of 2.x, strategies/fully_sharded_native.py of 1.x).
bool Training::is_in_wrapper_forward() const {
  return is_step_hook(hooks_.current()) && strategy_->accumulates_without_exchange();
}

// Where every rank holds all parameters between steps there is nothing to gather.
Task<Flow> Training::with_whole_parameters(const Statement& statement, Frame& frame) {
  const bool gathers = is_set_up_ && strategy_->has_whole_parameters();
  if (gathers && is_in_wrapper_forward()) {
    throw ProgramException(
        site_of(statement),
        fmt::format("AssertionError: Cannot manually unshard parameters during forward/backward: "
                    "the wrapper's forward calls {} (use a hook such as on_train_batch_end)",
                    hooks_.current()));
  }
  if (gathers && std::exchange(has_whole_parameters_, true)) {
    throw ProgramException(site_of(statement),
                           "AssertionError: Cannot manually unshard parameters when already "
                           "unsharding parameters");
  }
  if (gathers) {
    interpreter_.streams().hand_over_compute();
    co_await strategy_->begin_whole_parameters(rank_);
  }
  mark(statement, false);
  std::exception_ptr failure;
  Flow flow = Flow::next;
  try {
    flow = co_await interpreter_.run(statement.body, frame);
  } catch (...) {  // a context manager frees what it has gathered
    failure = std::current_exception();
  }
  if (gathers) {
    has_whole_parameters_ = false;
    co_await strategy_->end_whole_parameters(rank_);
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  co_return flow;
}

Program Training::decide(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  bool decision =
      co_await interpreter_.expressions().condition_of(statement.expression->value, frame, site);
  decision =
      co_await collectives_.reduce_boolean_decision(decision, value_or(statement.all, true), site);
  if (statement.result) {
    interpreter_.names().bind(statement.result->value, Variable{Value(decision)}, frame);
  }
}

// A row of the journal too: ranks that leave the loops apart were parted here.
Program Training::set_should_stop(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const bool stops =
      co_await interpreter_.expressions().condition_of(statement.expression->value, frame, site);
  progress.should_stop = rank_.choose(site, ChoiceKind::branch, 2, stops ? 1 : 0) == 1;
}

namespace {

bool calls_strategy(Kind kind) {
  return kind == Kind::forward || kind == Kind::backward || kind == Kind::clip_gradients ||
         kind == Kind::optimizer_step || kind == Kind::optimizer_closure ||
         kind == Kind::state_dict || kind == Kind::save_checkpoint ||
         kind == Kind::summon_full_params;
}

}  // namespace

// The strategy's calls in these have sites of their own, which no `if` encloses: the mark says
// which statement they were made for.
void Training::mark(const Statement& statement, bool begins) {
  if (calls_strategy(statement.kind) && interpreter_.is_guarded()) {
    rank_.choose(site_of(statement), ChoiceKind::statement, 2, begins ? 1 : 0);
  }
}

Task<Flow> Training::run(const Statement& statement, Frame& frame) {
  check_beside_whole_parameters(statement);
  mark(statement, true);
  Flow flow = Flow::next;
  switch (statement.kind) {
    case Kind::fit:
    case Kind::validate:
    case Kind::test:
    case Kind::predict:
      asked_checkpoint_ = value_or(statement.checkpoint, std::string());
      co_await run_trainer(statement.kind);
      break;
    case Kind::forward: co_await forward(&statement, frame); break;
    case Kind::log:
    case Kind::log_dict: co_await log_statement(statement, frame); break;
    case Kind::reduce_boolean_decision: co_await decide(statement, frame); break;
    case Kind::state_dict: co_await strategy_->read_state_dict(rank_, site_of(statement)); break;
    case Kind::save_checkpoint: {
      constexpr std::string_view path = "checkpoint.ckpt";  // the statement does not say
      co_await save_checkpoint(site_of(statement), false, static_cast<int64_t>(path.size()));
      break;
    }
    case Kind::should_stop: co_await set_should_stop(statement, frame); break;
    case Kind::summon_full_params: co_return co_await with_whole_parameters(statement, frame);
    default: flow = co_await run_training(statement, frame);
  }
  mark(statement, false);
  co_return flow;
}

Task<Flow> Training::run_training(const Statement& statement, Frame& frame) {
  switch (statement.kind) {
    case Kind::backward: co_await backward_of(statement, frame); break;
    case Kind::optimizer_step: co_await step_of(statement); break;
    case Kind::optimizer_closure: co_await closure_of(statement); break;
    case Kind::clip_gradients: co_await clip(statement, frame); break;
    case Kind::lr_scheduler_step: co_await step_scheduler(statement, frame); break;
    case Kind::zero_grad: {
      const size_t optimizer = optimizer_of(statement);
      const bool as_the_optimizer = program_.plan.optimizers[optimizer].set_to_none;
      co_await zero_grad(optimizer, value_or(statement.set_to_none, as_the_optimizer));
      break;
    }
    case Kind::set_requires_gradient_sync: co_await switch_gradient_sync(statement, frame); break;
    case Kind::no_sync: co_return co_await without_sync(statement, frame, true);
    case Kind::toggle_model: {
      bool synchronises = true;
      if (statement.sync_grad) {
        synchronises = co_await interpreter_.expressions().condition_of(statement.sync_grad->value,
                                                                        frame, site_of(statement));
      }
      const auto outer = std::exchange(toggled_, optimizer_of(statement));
      const Flow flow = co_await without_sync(statement, frame, !synchronises);
      toggled_ = outer;
      co_return flow;
    }
    default: co_await metrics_.run(statement, frame);
  }
  co_return Flow::next;
}

}  // namespace lockstep
