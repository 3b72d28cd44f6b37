#include "model/trainer/loop/fit_loop.hpp"

#include "model/trainer/data/data_feed.hpp"
#include "model/trainer/loop/evaluation_loop.hpp"
#include "model/trainer/loop/fit_periods.hpp"
#include "model/trainer/loop/steps_come.hpp"
#include "model/trainer/loop/validation_interval.hpp"

namespace lockstep {

namespace {

/// Training epochs and what validation runs between their batches.
class FitLoop {
 public:
  explicit FitLoop(Training& training)
      : training_(training),
        settings_(training.program().trainer),
        results_(training.interpreter(), training.strategy(), training.program(), true),
        validation_(training, EvaluationKind::validate),
        periods_(training) {}

  Program run();

 private:
  Program sanity_check();
  Program set_up();
  Program epochs();
  Program epoch();
  Program batch(const Batch& batch, bool steps, bool begins_window);
  Program log_batch(bool steps);
  Program step_schedulers(bool steps, bool monitored);
  Program validate_if_due(bool steps);
  Program leave_batches(const RankBatches& batches, int64_t count);
  Program end_epoch();
  FitPeriods::Epoch epoch_of_periods(int64_t ahead) const;
  bool validates_in_this_epoch() const;
  bool is_restarting() const;
  bool is_done() const;
  void note_position(bool ends_epoch, bool steps);
  int64_t take_first_batch(int64_t batches);
  bool must_stop() const;
  bool reached_max_steps() const;
  bool stops_early() const { return stops_; }
  void decide_to_stop();
  const LoaderSettings& loader() const { return training_.program().train.front(); }

  Training& training_;
  const TrainerSettings& settings_;
  LoggedResults results_;
  EvaluationLoop validation_;
  FitPeriods periods_;
  OwnBatches given_batches_;
  int64_t val_check_batch_ = 0;
  int64_t available_batches_ = 0;
  int64_t loaded_in_epoch_ = 0;
  int64_t first_batch_ = 0;  ///< of the epoch that runs: more than 0 where it has been resumed
  bool stops_ = false;       ///< early, as decided last
};

// checkpoint_connector, trainer._run_stage, then the loops.
Program FitLoop::run() {
  if (settings_.lightning >= Version{2, 5, 1}) {
    training_.progress.should_stop = false;  // of a fit before this one
  }
  co_await training_.begin_stage(Stage::fit);
  co_await training_.hook("on_fit_start");
  co_await training_.checkpoints().restore(training_.sites().resume_end);
  co_await training_.begin_loop();
  co_await training_.hook_of_1_x("on_pretrain_routine_start");
  co_await training_.hook_of_1_x("on_pretrain_routine_end");
  co_await sanity_check();
  if (settings_.limit_train.allows_any()) {
    co_await set_up();
    co_await epochs();
  }
  co_await training_.end_stage();
}

Program FitLoop::epochs() {
  if (available_batches_ == 0 || is_done()) {
    training_.log().found_no_batches = available_batches_ == 0;
    co_return;
  }
  if (validates_in_this_epoch()) {
    co_await validation_.set_up();
  }
  training_.results = &results_;
  co_await training_.hook("on_train_start");
  decide_to_stop();
  periods_.begin(available_batches_);
  while (!is_done()) {
    periods_.leave_out_epochs();
    if (settings_.reloads_after(training_.progress.epoch - loaded_in_epoch_)) {
      co_await set_up();
    }
    co_await epoch();
    training_.log().epochs = ++training_.progress.epoch;
    training_.termination().leave_if_come(false);
    decide_to_stop();
  }
  periods_.end_fit();
  training_.rates().log(training_.log());
  training_.checkpoints().set_resumes_at_epoch(training_.progress.epoch);
  co_await training_.callbacks().run(CallbackHook::train_end);
  co_await training_.hook("on_train_end");
  training_.results = nullptr;
}

Program FitLoop::sanity_check() {
  if (!validation_.is_enabled() || settings_.num_sanity_val_steps <= 0 || is_restarting()) {
    co_return;
  }
  training_.progress.sanity_checking = true;
  const std::map<std::string, double> metrics = training_.log().metrics;
  co_await training_.hook("on_sanity_check_start");
  co_await validation_.run(settings_.num_sanity_val_steps, true);
  co_await training_.hook("on_sanity_check_end");
  training_.log().metrics = metrics;
  training_.log().progress_bar.clear();
  training_.progress.sanity_checking = false;
}

// fit_loop.py, setup_data: the barrier of the loader; its length, and that of the CombinedLoader
// around it, summed over the ranks. Data without a length have one there if batches are limited.
Program FitLoop::set_up() {
  const TrainerSites& sites = training_.sites();
  co_await training_.loaders().count_batches(loader(), given_batches_);
  co_await training_.hook("train_dataloader");
  co_await training_.collectives().barrier(sites.train_loader);
  training_.loaders().check_sampler(loader(), LoaderRole::train);
  const RankBatches batches(loader(), training_.loaders().policy(LoaderRole::train), 0,
                            given_batches_);
  available_batches_ = settings_.limit_train.of(batches.size());
  loaded_in_epoch_ = training_.progress.epoch;
  const bool is_limited = settings_.limit_train.batches != TrainerSettings::no_limit;
  if (!loader().iterable && training_.distributed()) {
    co_await training_.collectives().reduce_length(batches.size(), sites.loader_length);
  }
  if ((!loader().iterable || is_limited) && training_.distributed()) {
    co_await training_.collectives().reduce_length(available_batches_, sites.loader_length);
  }
  check_validation_interval(settings_, available_batches_, loader().iterable);
  check_steps_come(training_.program(), available_batches_);
  val_check_batch_ =
      settings_.val_check_interval.batches != TrainerSettings::no_limit
          ? settings_.val_check_interval.batches
          : std::max<int64_t>(1, settings_.val_check_interval.of(available_batches_));
}

// trainer.py, _run_sanity_check: not where the loops restart, which they do within an epoch, and
// always where `max_steps` counts.
bool FitLoop::is_restarting() const {
  const std::optional<Resumption>& resumed = training_.log().resumption;
  const bool counts_steps = settings_.max_steps != TrainerSettings::no_limit;
  return resumed && !resumed->file.empty() && (resumed->batch > 0 || counts_steps);
}

bool FitLoop::is_done() const {
  return training_.progress.epoch >= settings_.max_epochs || must_stop();
}

bool FitLoop::must_stop() const { return reached_max_steps() || stops_early(); }

bool FitLoop::reached_max_steps() const {
  return training_.progress.global_step >= settings_.max_steps;
}

// The effect of the user's `should_stop`, whenever the loops look; a row of the journal, so that
// whoever asks why a rank has left finds the statements that set it before.
void FitLoop::decide_to_stop() {
  stops_ = training_.progress.should_stop && training_.can_stop_early();
  if (training_.program().sets_should_stop) {
    const SiteId site = training_.sites().should_stop;
    stops_ = training_.rank().choose(site, ChoiceKind::branch, 2, stops_ ? 1 : 0) == 1;
  }
}

bool FitLoop::validates_in_this_epoch() const {
  const int64_t every = settings_.check_val_every_n_epoch;
  return validation_.is_enabled() && (every == 0 || (training_.progress.epoch + 1) % every == 0);
}

Program FitLoop::validate_if_due(bool steps) {
  const Progress& progress = training_.progress;
  const int64_t counted =
      settings_.check_val_every_n_epoch == 0 ? progress.batches : progress.batch_idx + 1;
  const bool due = (loader().iterable && progress.is_last_batch) || stops_early() ||
                   counted % val_check_batch_ == 0;
  if (!validates_in_this_epoch() || !due) {
    co_return;
  }
  const Progress before = progress;
  co_await training_.publish_step_metrics();
  if (steps && settings_.lightning >= Version{2, 1, 0}) {
    co_await training_.batches().optimizers().release_gradients(true, training_.stage());
  }
  co_await validation_.run(TrainerSettings::no_limit, false);
  training_.progress.batch_idx = before.batch_idx;
  training_.progress.num_batches = before.num_batches;
  training_.progress.is_last_batch = before.is_last_batch;
  training_.progress.batch_size = before.batch_size;
  training_.results = &results_;
}

Program FitLoop::batch(const Batch& batch, bool steps, bool begins_window) {
  co_await training_.termination().share();
  co_await training_.transfer_batch();
  training_.batches().batch().enter(batch, loader());
  co_await training_.hook_of_1_x("on_batch_start");
  co_await training_.callbacks().run(CallbackHook::train_batch_start);
  co_await training_.hook("on_train_batch_start");
  if (steps) {
    training_.logger_rows().note_rates(training_.rates());
  }
  co_await training_.batches().train(steps, begins_window);
  co_await step_schedulers(steps, false);
  if (training_.progress.is_last_batch) {
    co_await training_.schedulers().step(SchedulerInterval::epoch, false);
  }
  note_position(training_.progress.is_last_batch, steps);
  co_await training_.callbacks().run(CallbackHook::train_batch_end);
  co_await training_.hook("on_train_batch_end");
  co_await training_.hook_of_1_x("on_batch_end");
  training_.batches().batch().leave();
}

// The property `metrics` turns what goes to the progress bar into numbers after every batch.
Program FitLoop::log_batch(bool steps) {
  co_await results_.show_progress();
  if (steps && settings_.has_logger && training_.logger_rows().are_due()) {
    training_.logger_rows().add(co_await results_.values_for_loggers(), std::nullopt);
  }
}

// Those of the interval `step` follow optimizer steps (training_epoch_loop.py).
Program FitLoop::step_schedulers(bool steps, bool monitored) {
  if (steps) {
    co_await training_.schedulers().step(SchedulerInterval::step, monitored);
  }
}

// Checkpoints are decided after EarlyStopping, and monitored schedulers step after both.
Program FitLoop::end_epoch() {
  co_await training_.hook_with_outputs("training_epoch_end");
  co_await training_.hook("on_train_epoch_end");
  co_await training_.hook_of_1_x("on_epoch_end");
  co_await results_.end_epoch(true);
  note_position(true, false);
  co_await training_.callbacks().run(CallbackHook::train_epoch_end);
  if (training_.progress.is_last_batch) {
    co_await training_.schedulers().step(SchedulerInterval::epoch, true);
  }
  --training_.progress.batches_that_stepped;
  training_.logger_rows().add(results_.take_epoch_values(), std::nullopt);
  ++training_.progress.batches_that_stepped;
}

// Where a fit begins that continues from a checkpoint of this moment (training_epoch_loop.py,
// reset: what is counted after the callbacks is counted then). Before 2.5 the batch that had not
// been completed when its callbacks saved was run again (Lightning pull request 20379).
void FitLoop::note_position(bool ends_epoch, bool steps) {
  const Progress& progress = training_.progress;
  training_.checkpoints().set_resumes_at(
      {progress.global_step, progress.batches_that_stepped + (steps ? 1 : 0), progress.epoch,
       progress.batch_idx + 1, progress.batches});
  if (ends_epoch) {
    training_.checkpoints().set_resumes_at_epoch(progress.epoch + 1);
  }
}

// Once: of the epoch that a checkpoint was saved in. The loader begins anew, and Lightning runs as
// many of its batches as were left. Where a different number of ranks has made the epoch shorter
// than what was done of it, all of it is run.
int64_t FitLoop::take_first_batch(int64_t batches) {
  const int64_t first = std::exchange(training_.progress.resumed_batch, 0);
  return first > batches ? 0 : first;
}

FitPeriods::Epoch FitLoop::epoch_of_periods(int64_t ahead) const {
  return {.ahead = ahead,
          .check_every = validates_in_this_epoch() ? val_check_batch_ : 0,
          .check_phase = settings_.check_val_every_n_epoch == 0 ? training_.progress.batches : 0,
          .is_resumed = first_batch_ > 0};
}

// A rank whose batches have ended leaves, whatever the others do: Join, if the strategy was asked
// for it, then mirrors what they still call.
Program FitLoop::epoch() {
  Progress& progress = training_.progress;
  const RankBatches batches(loader(), training_.loaders().policy(LoaderRole::train), progress.epoch,
                            given_batches_);
  progress.num_batches = settings_.limit_train.of(batches.size());
  first_batch_ = take_first_batch(progress.num_batches);
  const bool keeps_outputs = training_.hooks().has("training_epoch_end");
  training_.outputs().clear();
  co_await training_.begin_epoch();
  training_.rates().log(training_.log());
  if (first_batch_ == 0) {  // fit_loop.py, on_advance_start
    co_await training_.callbacks().run(CallbackHook::train_epoch_start);
    co_await training_.hook_of_1_x("on_epoch_start");
    co_await training_.hook("on_train_epoch_start");
  }
  decide_to_stop();
  DataFeed feed(training_.rank(), loader(), given_batches_.size.value_or(loader().batch_size));
  const int64_t window = settings_.accumulate_grad_batches;
  training_.loaders().note_batches(loader(), progress.num_batches);
  std::optional<RepeatedBatches> repeated = periods_.batches_of(epoch_of_periods(feed.ahead()));
  training_.checkpoints().set_epoch(&batches);
  int64_t number = first_batch_;
  for (; !must_stop() && training_.loaders().goes_on(loader(), number < progress.num_batches);
       ++number) {
    if (repeated) {
      const int64_t left_out = repeated->left_out(number);
      feed.leave_out(left_out);
      number += left_out;
    }
    const Batch next = batches.at(number - first_batch_);
    co_await training_.hooks().begin_step(training_.progress.global_step);
    results_.begin_batch(LoggedResults::only_loader);
    co_await feed.next(next.size(), number - first_batch_, progress.num_batches - first_batch_);
    progress.batch_idx = number;
    progress.batch_size = next.size();
    progress.is_last_batch = number + 1 == progress.num_batches;
    ++progress.batches;
    const bool steps = steps_at(training_.program(), number, progress.is_last_batch);
    training_.checkpoints().set_used_of_epoch(number + 1 - first_batch_);
    co_await batch(next, steps, number % window == 0);
    co_await log_batch(steps);
    if (progress.is_last_batch) {  // wherever rows of the logger fell
      training_.rank().ends_period_alike(period_level::epochs);
    }
    if (!keeps_outputs) {
      training_.outputs().clear();
    }
    decide_to_stop();
    note_position(false, steps);
    co_await validate_if_due(steps);
    co_await step_schedulers(steps, true);
    decide_to_stop();
    progress.batches_that_stepped += steps ? 1 : 0;
    training_.termination().leave_if_come(progress.is_last_batch || reached_max_steps());
  }
  training_.checkpoints().set_epoch(nullptr);
  co_await leave_batches(batches, number - first_batch_);
  co_await end_epoch();
}

Program FitLoop::leave_batches(const RankBatches& batches, int64_t count) {
  if (training_.membership().counts_samples) {
    training_.log().samples.push_back({"train", training_.progress.epoch, 0, {batches, count}});
  }
  MirroredSteps mirrored = periods_.mirrored_steps();
  const bool takes_over = co_await training_.strategy().join(training_.rank(), mirrored);
  periods_.end_epoch(takes_over);
  if (takes_over) {
    training_.batches().tally().note_taken_over(training_.log());
  }
  results_.end_batches();
}

}  // namespace

Program fit(Training& training) {
  FitLoop loop(training);
  co_await loop.run();
}

}  // namespace lockstep
