#include "model/trainer/loop/gradient_statements.hpp"

#include <exception>
#include <utility>

#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

using Kind = StatementKind;

}  // namespace

GradientStatements::GradientStatements(const TrainingContext& context, const HookRunner& hooks,
                                       BatchRunner& batches, const TrainedModel& model,
                                       Schedulers& schedulers)
    : program_(context.program),
      strategy_(context.strategy),
      interpreter_(context.interpreter),
      hooks_(hooks),
      batches_(batches),
      model_(model),
      schedulers_(schedulers) {}

bool GradientStatements::runs(StatementKind kind) {
  switch (kind) {
    case Kind::backward:
    case Kind::optimizer_step:
    case Kind::optimizer_closure:
    case Kind::clip_gradients:
    case Kind::lr_scheduler_step:
    case Kind::zero_grad:
    case Kind::set_requires_gradient_sync:
    case Kind::no_sync:
    case Kind::toggle_model: return true;
    default: return false;
  }
}

Task<Flow> GradientStatements::run(const Statement& statement, Frame& frame) {
  switch (statement.kind) {
    case Kind::backward: co_await backward(statement, frame); break;
    case Kind::optimizer_step: co_await batches_.step(statement); break;
    case Kind::optimizer_closure: co_await batches_.run_closure_of(statement); break;
    case Kind::clip_gradients: co_await clip(statement, frame); break;
    case Kind::lr_scheduler_step: co_await step_scheduler(statement, frame); break;
    case Kind::zero_grad: {
      const size_t optimizer = batches_.optimizers().optimizer_of(statement);
      const bool as_the_optimizer = program_.plan.optimizers[optimizer].set_to_none;
      co_await batches_.optimizers().zero_grad(optimizer,
                                               value_or(statement.set_to_none, as_the_optimizer));
      break;
    }
    case Kind::set_requires_gradient_sync: co_await switch_gradient_sync(statement, frame); break;
    case Kind::no_sync: co_return co_await without_sync(statement, frame, true);
    default:
      ensure(statement.kind == Kind::toggle_model, "a statement about gradients");
      co_return co_await toggle_model(statement, frame);
  }
  co_return Flow::next;
}

Program GradientStatements::backward(const Statement& statement, Frame& frame) {
  if (!batches_.forward().is_done()) {
    throw ProgramException(site_of(statement), "backward without a forward before it");
  }
  BackwardStart start;
  start.of_loss = 1;
  if (statement.expression) {
    const SiteId site = site_of(statement);
    const Variable variable =
        co_await interpreter_.expressions().variable_of(statement.expression->value, frame, site);
    start = co_await interpreter_.backward().gradient_of(variable.gradient,
                                                         batches_.graphs().results(), site);
  }
  co_await batches_.optimizers().backward(std::move(start), site_of(statement));
}

Program GradientStatements::clip(const Statement& statement, Frame& frame) {
  using Algorithm = GradientClipping::Algorithm;
  const SiteId site = site_of(statement);
  const GradientClipping& of_trainer = program_.trainer.gradient_clipping;
  const bool trainer_clips = of_trainer.algorithm != Algorithm::none;
  GradientClipping clipping = of_trainer;
  if (statement.expression) {
    clipping.limit = co_await interpreter_.expressions().number_of(
        statement.expression->value, frame, site, "`gradient_clip_val`");
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
  batches_.optimizers().clip_at_step(batches_.optimizers().optimizer_of(statement), clipping, site);
}

Program GradientStatements::step_scheduler(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  std::optional<int64_t> number;
  if (statement.scheduler) {
    number = statement.scheduler->value;
  }
  std::optional<double> metric;
  if (statement.expression) {
    metric = co_await interpreter_.expressions().number_of(statement.expression->value, frame, site,
                                                           "`metric`");
  }
  schedulers_.step_by_program(number, metric, site);
}

Task<Flow> GradientStatements::toggle_model(const Statement& statement, Frame& frame) {
  bool synchronises = true;
  if (statement.sync_grad) {
    synchronises = co_await interpreter_.expressions().condition_of(statement.sync_grad->value,
                                                                    frame, site_of(statement));
  }
  const std::optional<size_t> outer =
      batches_.switches().set_toggled(batches_.optimizers().optimizer_of(statement));
  const Flow flow = co_await without_sync(statement, frame, !synchronises);
  batches_.switches().set_toggled(outer);
  co_return flow;
}

Task<Flow> GradientStatements::without_sync(const Statement& statement, Frame& frame,
                                            bool without) {
  if (const std::string refusal = without ? strategy_.no_sync_refusal() : ""; !refusal.empty()) {
    throw ProgramException(site_of(statement), refusal);
  }
  const bool outer = batches_.switches().synchronises();
  batches_.switches().set_synchronise(outer && !without);
  std::exception_ptr failure;
  Flow flow = Flow::next;
  try {
    flow = co_await interpreter_.run(statement.body, frame);
  } catch (...) {  // a context manager restores what it has set
    failure = std::current_exception();
  }
  batches_.switches().set_synchronise(outer);
  if (failure) {
    std::rethrow_exception(failure);
  }
  co_return flow;
}

// A setting of the module, which stays until it is set again.
Program GradientStatements::switch_gradient_sync(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  if (program_.settings.stands_for > 1) {
    co_return;  // one device has nobody to leave out
  }
  if (!strategy_.has_gradient_sync_switch()) {
    throw ProgramException(site,
                           "AttributeError: the module has no attribute "
                           "'set_requires_gradient_sync', which fully_shard alone gives it (use "
                           "no_sync)");
  }
  if (!model_.is_set_up() && hooks_.current() != "configure_model") {
    throw ProgramException(site,
                           "AttributeError: the module has no attribute "
                           "'set_requires_gradient_sync' before configure_model has called "
                           "fully_shard (set it in a later hook, such as on_fit_start)");
  }
  const bool requires_it =
      co_await interpreter_.expressions().condition_of(statement.expression->value, frame, site);
  batches_.switches().set_requires_gradient_sync(requires_it);
}

}  // namespace lockstep
