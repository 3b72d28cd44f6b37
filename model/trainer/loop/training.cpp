// Shared parts of the loops: stages, hooks, names, and the collectives that Lightning itself calls.
#include "model/trainer/loop/training.hpp"

#include <algorithm>

#include "model/expression/tensor.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/trainer/loop/evaluation_loop.hpp"
#include "model/trainer/loop/fit_loop.hpp"
#include "model/user_program/sites.hpp"

namespace lockstep {

namespace {

/// Of columns, by all ranks together.
constexpr int64_t most_numbers_kept = int64_t{1} << 22;

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

bool Training::has_process_group() const {
  return strategy_->has_process_group() || program_.settings.stands_for > 1;
}

Task<Slice> Training::gather_rows(Slice part, std::vector<int64_t> shape, SiteId site) {
  co_return co_await strategy_->gather_rows(rank_, part, std::move(shape), site);
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
      interpreter_(rank, program.settings, log_, this),
      collectives_(rank, membership_, *strategy_, interpreter_.streams(), interpreter_.tensors()),
      termination_(rank, program, collectives_),
      hooks_(program, interpreter_, termination_),
      rates_(program),
      metrics_(interpreter_, *strategy_, program),
      columns_(most_numbers_kept / std::max(1, rank.world_size()), rank.place()),
      callbacks_(program.callbacks, *this),
      schedulers_(*this) {
  if (program.scales_loss) {
    loss_scale_.emplace();
    loss_scale_->stand_for(program.scales_for);
  }
}

// Weights and metrics come back from processes that Lightning has made; the module does not.
// trainer/call.py: the module hears of an exception in a loop, which is then raised again.
Program Training::run_trainer(StatementKind kind) {
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
    leave_batch();  // it has gone with the loop, and so have the results
    results = nullptr;
    termination_.end_handling();
    co_await hooks_.run("on_exception");
    std::rethrow_exception(failure);
  }
  if (program_.in_children) {
    interpreter_.names().end_child();
  }
}

std::optional<Value> Training::lookup(std::string_view name) {
  if (name == "global_step") {
    return Value(progress.global_step);
  }
  if (name == "epoch") {
    return Value(progress.epoch);
  }
  if (name == "batch_idx") {
    return Value(progress.batch_idx);
  }
  if (name == "batch_size") {
    return Value(progress.batch_size);
  }
  if (name == "num_batches") {
    return Value(progress.num_batches);
  }
  if (name == "dataloader_idx") {
    return Value(progress.dataloader_idx);
  }
  if (name == "is_last_batch") {
    return Value(progress.is_last_batch);
  }
  if (name == "sanity_checking") {
    return Value(progress.sanity_checking);
  }
  if (name == "loss_scale" && loss_scale() != nullptr) {
    return Value(loss_scale()->scale());
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
    return columns_.values(*loader_->columns, name, *batch_, !training_);
  }
  return std::nullopt;
}

bool Training::is_column(std::string_view name) const {
  return loader_ != nullptr && loader_->columns->has(name);
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

SamplerPolicy Training::policy(LoaderRole role) const {
  SamplerPolicy policy;
  policy.role = role;
  policy.distributed = distributed();
  policy.inject = program_.trainer.inject_sampler;
  policy.replicas = membership_.data_parallel_size;
  policy.index = membership_.data_parallel_index;
  policy.ranks = membership_.trainers;
  policy.rank = membership_.trainer_index;
  policy.seed = program_.settings.seed;
  const bool joins = role == LoaderRole::train ||
                     (role == LoaderRole::evaluate && program_.settings.joins_evaluation);
  if (joins && program_.settings.stands_for > 1) {
    policy.distributed = true;
    policy.replicas = program_.settings.stands_for;
    policy.joins = true;
  }
  return policy;
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
  is_set_up_ = true;
  bind_buffers();
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

// fit_loop.py, _can_stop_early: epochs that have been run in full, the present one not among them.
bool Training::can_stop_early() const {
  return progress.epoch >= program_.trainer.min_epochs &&
         progress.global_step >= program_.trainer.min_steps;
}

// overrides/distributed.py, UnrepeatedDistributedSampler.
void Training::check_sampler(const LoaderSettings& loader, LoaderRole role) const {
  const Sampler::Options options = sampler_options(loader, policy(role), 0);
  if (!loader.batches && !loader.iterable && options.samples > 0 &&
      options.division == Sampler::Division::unrepeated && Sampler(options).size() == 0) {
    throw ProgramException(site_of(loader.place),
                           "UnrepeatedDistributedSampler needs a sample for every rank");
  }
}

}  // namespace lockstep
