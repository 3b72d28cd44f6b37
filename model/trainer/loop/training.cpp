#include "model/trainer/loop/training.hpp"

#include <exception>

#include "model/strategy/local_model/replica.hpp"
#include "model/trainer/loop/evaluation_loop.hpp"
#include "model/trainer/loop/fit_loop.hpp"

namespace lockstep {

namespace {

constexpr std::string_view looks_at_should_stop = "Lightning, look at trainer.should_stop";

std::string_view suffix_of(Stage stage) {
  switch (stage) {
    case Stage::fit: return "";
    case Stage::validate: return " (validate)";
    case Stage::test: return " (test)";
    case Stage::predict: return " (predict)";
  }
  return "";
}

Program run(Rank& rank, std::shared_ptr<const TrainingProgram> program) {
  Training training(rank, *program);
  co_await training.run_main();
}

}  // namespace

TrainerSites add_trainer_sites(Sites& sites, Stage stage) {
  const auto add = [&sites, stage](std::string_view description) {
    Site site;
    site.description = std::string(description) + std::string(suffix_of(stage));
    site.is_barrier = description.find("barrier") != std::string_view::npos;
    site.answers_signal = description == "Lightning, handler of SIGTERM" ||
                          description == "Lightning, barrier before SIGTERMException";
    site.stop = description == looks_at_should_stop ? StopRole::looks : StopRole::none;
    return sites.add(site);
  };
  TrainerSites known;
  known.log_dir = add("Lightning, broadcast of the log directory");
  known.pre_setup = add("Lightning, barrier before setup");
  known.post_setup = add("Lightning, barrier after setup");
  known.resume_end = add("Lightning, barrier after restoring state");
  known.run_stage = add("Lightning, barrier before the stage");
  known.prepare_data = add("Lightning, barrier after prepare_data");
  known.train_loader = add("Lightning, train_dataloader() barrier");
  known.val_loader = add("Lightning, val_dataloader() barrier");
  known.test_loader = add("Lightning, test_dataloader() barrier");
  known.predict_loader = add("Lightning, predict_dataloader() barrier");
  known.loader_length = add("Lightning, reduce of a loader's length");
  known.sigterm = add("Lightning, broadcast of the SIGTERM flag");
  known.sigterm_handler = add("Lightning, handler of SIGTERM");
  known.sigterm_exit = add("Lightning, barrier before SIGTERMException");
  known.should_stop = add(looks_at_should_stop);
  return known;
}

ProgramOfRank training_program(std::shared_ptr<const TrainingProgram> program) {
  return [program](Rank& rank) { return run(rank, program); };
}

int64_t TrainerSettings::Limit::of(int64_t available) const {
  if (batches != no_limit) {
    return std::min(batches, available);
  }
  return part >= 1 ? available : static_cast<int64_t>(part * static_cast<double>(available));
}

Training::Training(Rank& rank, const TrainingProgram& program)
    : rank_(rank),
      program_(program),
      log_(program.log->ranks[rank.place().rank.value]),
      membership_(program.membership(rank.place())),
      strategy_(program.make_strategy(program.plan_of(rank.id()), program.arguments_of(rank.id()))),
      interpreter_(rank, program.settings, log_, &statements_),
      collectives_(rank, membership_, *strategy_, interpreter_.streams(), interpreter_.tensors()),
      termination_(rank, program, collectives_),
      hooks_(program, interpreter_, termination_),
      rates_(program),
      callbacks_(program.callbacks, *this),
      schedulers_(*this),
      loaders_(context(), membership_),
      rows_(program, log_, progress, rank.place().rank == RankId{0}),
      batches_(context(), membership_, hooks_, rates_, progress),
      model_(context(), hooks_),
      checkpoints_(
          context(), collectives_, hooks_,
          {progress, rates_, callbacks_, schedulers_, batches_.optimizers().own_loss_scale()}),
      statements_(
          context(),
          {progress, collectives_, hooks_, batches_, model_, checkpoints_, schedulers_, results},
          [this](StatementKind stage) { return run_stage(stage); }),
      periods_(*this) {}

Program Training::run_main() {
  log_.runs_trainer = membership_.runs_trainer;
  if (membership_.runs_trainer) {
    co_await run_script();
    co_await strategy_->dismiss_servers(rank_);
  } else {
    co_await strategy_->serve(rank_);
    log_.staleness = strategy_->staleness();
    log_.transfers = strategy_->transfers_per_step();
  }
  if (model_.is_set_up() || !membership_.runs_trainer) {
    model_.log_parameters(membership_.runs_trainer);
  }
}

Program Training::run_script() {
  interpreter_.locations().make_on_host(program_.settings.on_gpus);
  co_await hooks_.run("__init__");
  interpreter_.locations().make_on_host(false);
  if (!hooks_.has("main")) {
    co_await hooks_.begin("main");
    co_await run_stage(StatementKind::fit);
  } else {
    co_await hooks_.run("main");
  }
  interpreter_.tell_unwaited();
  co_await interpreter_.streams().synchronize_all();
  log_.known_differences =
      model_.known_differences(batches_.optimizers().own_loss_scale(),
                               batches_.tally().micro_batches(), progress.global_step);
  if (batches_.optimizers().loss_scale() != nullptr) {
    log_.skipped_steps = batches_.optimizers().loss_scale()->skipped_steps();
  }
  if (model_.is_set_up()) {
    model_.log_strategy();
  }
}

// Weights and metrics come back from processes that Lightning has made; the module does not.
// trainer/call.py: the module hears of an exception in a loop, which is then raised again.
Program Training::run_stage(StatementKind kind) {
  if (program_.in_children) {
    interpreter_.names().begin_child();
  }
  std::exception_ptr failure;
  try {
    switch (kind) {
      case StatementKind::validate: co_await evaluate(*this, EvaluationKind::validate); break;
      case StatementKind::test: co_await evaluate(*this, EvaluationKind::test); break;
      case StatementKind::predict: co_await evaluate(*this, EvaluationKind::predict); break;
      default: co_await fit(*this);
    }
  } catch (const ProgramException&) {
    failure = std::current_exception();
  }
  if (failure) {
    batches_.batch().leave();  // it has gone with the loop, and so have the results
    results = nullptr;
    termination_.end_handling();
    co_await hooks_.run("on_exception");
    std::rethrow_exception(failure);
  }
  if (program_.in_children) {
    interpreter_.names().end_child();
  }
}

const TrainerSites& Training::sites() const { return program_.sites[static_cast<size_t>(stage_)]; }

// trainer.py, _run: what every stage does before its loop.
Program Training::begin_stage(Stage stage) {
  stage_ = stage;
  const TrainerSites& sites = this->sites();
  termination_.begin_stage(sites);
  co_await collectives_.broadcast_log_dir(sites.log_dir);
  if (hooks_.has("prepare_data")) {
    if (rank_.place().local_rank == 0) {
      co_await hooks_.run("prepare_data");
    }
    co_await collectives_.barrier(sites.prepare_data);
  }
  co_await collectives_.barrier(sites.pre_setup);
  co_await callbacks_.run(CallbackHook::setup);
  co_await hooks_.run("setup");
  co_await collectives_.barrier(sites.post_setup);
  co_await hooks_.run("configure_sharded_model");
  if (program_.trainer.lightning >= Version{2, 1, 0}) {
    co_await hooks_.run("configure_model");
  }
  interpreter_.streams().hand_over_compute();
  co_await strategy_->setup(rank_, stage);
  model_.begin();
  if (stage == Stage::fit) {
    co_await hooks_.run("configure_optimizers");  // strategy.setup_optimizers, after the wrapping
    schedulers_.begin();
  }
}

Program Training::begin_loop() {
  co_await collectives_.barrier(sites().resume_end);
  termination_.begin_handling();
  co_await collectives_.barrier(sites().run_stage);
}

// trainer.py, _teardown: the strategy's comes before the hooks.
Program Training::end_stage() {
  interpreter_.streams().hand_over_compute();
  co_await strategy_->teardown(rank_);
  termination_.end_handling();
  if (stage_ == Stage::fit) {
    co_await hooks_.run("on_fit_end");
  }
  co_await hooks_.run("teardown");
}

// training_epoch_loop.py and evaluation_loop.py: before the hook of the batch.
Program Training::transfer_batch() {
  for (const char* name :
       {"on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer"}) {
    if (hooks_.has(name)) {
      co_await hooks_.run(name);
    }
  }
}

Program Training::begin_epoch() {
  statements_.begin_epoch();
  return hooks_.begin_epoch(progress.epoch);
}

void Training::remember(ProgramMemory& memory) const {
  memory.numbers.push_back(progress.should_stop ? 1 : 0);
  if (!program_.trainer.automatic_optimization) {  // a step may end several batches after it began
    memory.numbers.push_back(batches_.tally().since_update().batches);
  }
  strategy_->remember(memory);
  interpreter_.tensors().remember(memory);
  if (results != nullptr) {
    results->remember(memory);
  }
}

bool Training::has_validation() const {
  return !program_.validation.empty() && program_.trainer.limit_validation.allows_any();
}

Program Training::publish_step_metrics() {
  if (program_.monitors_metrics && results != nullptr) {
    co_await results->publish_steps();
  }
}

// fit_loop.py, _can_stop_early: epochs that have been run in full, the present one not among them.
bool Training::can_stop_early() const {
  return progress.epoch >= program_.trainer.min_epochs &&
         progress.global_step >= program_.trainer.min_steps;
}

}  // namespace lockstep
