#include "model/trainer/loop/trainer_statements.hpp"

#include <fmt/core.h>

#include <exception>
#include <utility>

#include "model/scenario/hooks.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

using Kind = StatementKind;

/// torch's page of summon_full_params forbids them inside of it, and its code does not look.
bool needs_shards(Kind kind) {
  return (kind >= Kind::fit && kind <= Kind::optimizer_closure) || kind == Kind::clip_gradients ||
         kind == Kind::save_checkpoint || kind == Kind::state_dict;
}

bool calls_strategy(Kind kind) {
  return kind == Kind::forward || kind == Kind::backward || kind == Kind::clip_gradients ||
         kind == Kind::optimizer_step || kind == Kind::optimizer_closure ||
         kind == Kind::state_dict || kind == Kind::save_checkpoint ||
         kind == Kind::summon_full_params || kind == Kind::no_sync;
}

}  // namespace

TrainerStatements::TrainerStatements(const TrainingContext& context, const Parts& parts,
                                     RunStage run_stage)
    : rank_(context.rank),
      program_(context.program),
      log_(context.log),
      strategy_(context.strategy),
      interpreter_(context.interpreter),
      parts_(parts),
      run_stage_(std::move(run_stage)),
      metrics_(context.interpreter, context.strategy, context.program),
      logs_(context, parts.collectives, parts.hooks, parts.batches.batch(), metrics_,
            parts.results),
      gradients_(context, parts.hooks, parts.batches, parts.model, parts.schedulers) {}

Task<Flow> TrainerStatements::run(const Statement& statement, Frame& frame) {
  check_beside_whole_parameters(statement);
  mark(statement, true);
  Flow flow = Flow::next;
  switch (statement.kind) {
    case Kind::fit:
    case Kind::validate:
    case Kind::test:
    case Kind::predict:
      parts_.checkpoints.ask_for(value_or(statement.checkpoint, std::string()));
      co_await run_stage_(statement.kind);
      break;
    case Kind::forward: co_await parts_.batches.forward().run(&statement, frame); break;
    case Kind::log:
    case Kind::log_dict: co_await logs_.run(statement, frame); break;
    case Kind::reduce_boolean_decision: co_await decide(statement, frame); break;
    case Kind::state_dict: co_await strategy_.read_state_dict(rank_, site_of(statement)); break;
    case Kind::save_checkpoint: {
      constexpr std::string_view path = "checkpoint.ckpt";  // the statement does not say
      co_await parts_.checkpoints.save(site_of(statement), false,
                                       static_cast<int64_t>(path.size()));
      break;
    }
    case Kind::should_stop: co_await set_should_stop(statement, frame); break;
    case Kind::summon_full_params: co_return co_await with_whole_parameters(statement, frame);
    default: flow = co_await run_other(statement, frame);
  }
  mark(statement, false);
  co_return flow;
}

Task<Flow> TrainerStatements::run_other(const Statement& statement, Frame& frame) {
  if (GradientStatements::runs(statement.kind)) {
    return gradients_.run(statement, frame);
  }
  return run_metric(statement, frame);
}

Task<Flow> TrainerStatements::run_metric(const Statement& statement, Frame& frame) {
  co_await metrics_.run(statement, frame);
  co_return Flow::next;
}

// The strategy's calls in these have sites of their own, which no `if` encloses: the mark says
// which statement they were made for.
void TrainerStatements::mark(const Statement& statement, bool begins) {
  if (calls_strategy(statement.kind) && interpreter_.is_guarded()) {
    rank_.choose(site_of(statement), ChoiceKind::statement, 2, begins ? 1 : 0);
  }
}

// A row of the journal too: ranks that leave the loops apart were parted here.
Program TrainerStatements::set_should_stop(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  const bool stops =
      co_await interpreter_.expressions().condition_of(statement.expression->value, frame, site);
  parts_.progress.should_stop = rank_.choose(site, ChoiceKind::branch, 2, stops ? 1 : 0) == 1;
}

Program TrainerStatements::decide(const Statement& statement, Frame& frame) {
  const SiteId site = site_of(statement);
  bool decision =
      co_await interpreter_.expressions().condition_of(statement.expression->value, frame, site);
  decision = co_await parts_.collectives.reduce_boolean_decision(
      decision, value_or(statement.all, true), site);
  if (statement.result) {
    interpreter_.names().bind(statement.result->value, Variable{Value(decision)}, frame);
  }
}

void TrainerStatements::check_beside_whole_parameters(const Statement& statement) {
  if (has_whole_parameters_ && needs_shards(statement.kind)) {
    lack_at(log_, site_of(statement),
            fmt::format("`{}` inside of summon_full_params is not modelled: neither a "
                        "forward nor a backward may begin there",
                        name_of(statement.kind)),
            "do it before or after");
  }
}

// Where every rank holds all parameters between steps there is nothing to gather.
Task<Flow> TrainerStatements::with_whole_parameters(const Statement& statement, Frame& frame) {
  const bool gathers = parts_.model.is_set_up() && strategy_.has_whole_parameters();
  if (gathers && parts_.model.is_in_wrapper_forward()) {
    throw ProgramException(
        site_of(statement),
        fmt::format("AssertionError: Cannot manually unshard parameters during forward/backward: "
                    "the wrapper's forward calls {} (use a hook such as on_train_batch_end)",
                    parts_.hooks.current()));
  }
  if (gathers && std::exchange(has_whole_parameters_, true)) {
    throw ProgramException(site_of(statement),
                           "AssertionError: Cannot manually unshard parameters when already "
                           "unsharding parameters");
  }
  if (gathers) {
    interpreter_.streams().hand_over_compute();
    co_await strategy_.begin_whole_parameters(rank_);
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
    co_await strategy_.end_whole_parameters(rank_);
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  co_return flow;
}

std::optional<Value> TrainerStatements::lookup(std::string_view name) {
  if (name == "global_step") {
    return Value(parts_.progress.global_step);
  }
  if (name == "epoch") {
    return Value(parts_.progress.epoch);
  }
  if (name == "batch_idx") {
    return Value(parts_.progress.batch_idx);
  }
  if (name == "batch_size") {
    return Value(parts_.progress.batch_size);
  }
  if (name == "num_batches") {
    return Value(parts_.progress.num_batches);
  }
  if (name == "dataloader_idx") {
    return Value(parts_.progress.dataloader_idx);
  }
  if (name == "is_last_batch") {
    return Value(parts_.progress.is_last_batch);
  }
  if (name == "sanity_checking") {
    return Value(parts_.progress.sanity_checking);
  }
  if (name == "loss_scale") {
    if (const LossScale* const scale = parts_.batches.optimizers().loss_scale()) {
      return Value(scale->scale());
    }
  }
  if (name == "callback_metrics") {
    Map metrics;
    for (const auto& [key, value] : log_.metrics) {
      metrics.emplace_back(key, Value(value));
    }
    return Value(std::move(metrics));
  }
  if (find_metric(program_.metrics, std::string(name)) != nullptr) {
    return Value(Handle{Handle::Kind::metric, std::string(name)});
  }
  if (is_column(name)) {
    return parts_.batches.batch().column(name);
  }
  return std::nullopt;
}

bool TrainerStatements::is_column(std::string_view name) const {
  return parts_.batches.batch().has_column(name);
}

// logger_connector.py: the property reduces what the epoch has logged when it is first read.
Program TrainerStatements::refresh_callback_metrics() {
  if (parts_.results != nullptr) {
    co_await parts_.results->refresh();
  }
}

bool TrainerStatements::has_process_group() const {
  return strategy_.has_process_group() || program_.settings.stands_for > 1;
}

Task<Slice> TrainerStatements::gather_rows(Slice part, std::vector<int64_t> shape, SiteId site) {
  co_return co_await strategy_.gather_rows(rank_, part, std::move(shape), site);
}

// Only outputs of batches belong to an epoch: a history of epochs is meant to grow.
void TrainerStatements::list_grew(const std::string& name) {
  if (parts_.batches.batch().is_there()) {
    kept_lists_.grew(name);
  }
}

void TrainerStatements::list_read(const std::string& name, SiteId site) {
  if (parts_.batches.batch().is_there()) {
    return;
  }
  const std::string leftovers = kept_lists_.ask_for_leftovers(name);
  if (!leftovers.empty()) {
    log_.add({"LS312", site,
              fmt::format("the list `{}` still holds {}: nothing has emptied it", name, leftovers),
              fmt::format("empty it at the end of this hook: - let: {{{}: \"[]\"}}", name), 1,
              name});
  }
}

void TrainerStatements::begin_epoch() {
  metrics_.begin_pass(Stage::fit);
  kept_lists_.begin_pass(Stage::fit, false);
}

void TrainerStatements::begin_evaluation(Stage stage, bool is_sanity_check) {
  metrics_.begin_pass(stage);
  kept_lists_.begin_pass(stage, is_sanity_check);
}

void TrainerStatements::end_evaluation() {
  metrics_.end_evaluation();
  kept_lists_.end_evaluation();
}

}  // namespace lockstep
