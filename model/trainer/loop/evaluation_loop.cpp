#include "model/trainer/loop/evaluation_loop.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/trainer/data/data_feed.hpp"
#include "model/trainer/loop/repeated_evaluation.hpp"

namespace lockstep {

std::string EvaluationLoop::prefix() const {
  switch (kind_) {
    case EvaluationKind::validate: return "validation";
    case EvaluationKind::test: return "test";
    case EvaluationKind::predict: return "predict";
  }
  return "";
}

const std::vector<LoaderSettings>& EvaluationLoop::loaders() const {
  const TrainingProgram& program = training_.program();
  return kind_ == EvaluationKind::validate ? program.validation
         : kind_ == EvaluationKind::test   ? program.test
                                           : program.predict;
}

LoaderRole EvaluationLoop::role() const {
  return kind_ == EvaluationKind::predict ? LoaderRole::predict : LoaderRole::evaluate;
}

const TrainerSettings::Limit& EvaluationLoop::limit() const {
  const TrainerSettings& settings = training_.program().trainer;
  return kind_ == EvaluationKind::validate ? settings.limit_validation
         : kind_ == EvaluationKind::test   ? settings.limit_test
                                           : settings.limit_predict;
}

// data_connector.py, _parse_num_batches.
void EvaluationLoop::check_limit(const LoaderSettings& loader, const OwnBatches& given) const {
  const int64_t length = RankBatches(loader, training_.loaders().policy(role()), 0, given).size();
  const bool in_parts = limit().batches == TrainerSettings::no_limit;
  if (in_parts && limit().part > 0 && length > 0 && limit().of(length) == 0) {
    const std::string name = kind_ == EvaluationKind::validate ? "val" : prefix();
    throw ProgramException(
        limit().site,
        fmt::format("You requested to check {} of the `{}_dataloader` but {} * {} < 1; "
                    "try at least `limit_{}_batches={:.6g}`",
                    limit().part, name, limit().part, length, name,
                    1.0 / static_cast<double>(length)));
  }
}

// evaluation_loop.py, setup_data: what the sanity check has loaded is as old as the fit where its
// first epoch is validated; else it is made again before the first validation.
bool EvaluationLoop::must_set_up() const {
  const TrainerSettings& settings = training_.program().trainer;
  if (!is_set_up_ || training_.stage() != Stage::fit || settings.reload_every_n_epochs == 0) {
    return !is_set_up_;
  }
  return !loaded_in_epoch_ || settings.reloads_after(training_.progress.epoch - *loaded_in_epoch_);
}

Program EvaluationLoop::set_up() {
  if (!must_set_up()) {
    co_return;
  }
  is_set_up_ = true;
  seen_batches_.clear();
  const int64_t validated = training_.program().trainer.check_val_every_n_epoch;
  if (!training_.progress.sanity_checking || validated <= 1) {
    loaded_in_epoch_ = training_.progress.epoch;
  }
  const TrainerSites& sites = training_.sites();
  const std::string hook = (kind_ == EvaluationKind::validate ? "val" : prefix()) + "_dataloader";
  co_await training_.hook(hook);
  co_await training_.collectives().barrier(kind_ == EvaluationKind::validate ? sites.val_loader
                                           : kind_ == EvaluationKind::test   ? sites.test_loader
                                                                           : sites.predict_loader);
  for (const LoaderSettings& loader : loaders()) {
    OwnBatches given;
    co_await training_.loaders().count_batches(loader, given);
    training_.loaders().check_sampler(loader, role());
    check_limit(loader, given);
    if (!loader.iterable && training_.distributed()) {
      const RankBatches batches(loader, training_.loaders().policy(role()), 0, given);
      co_await training_.collectives().reduce_length(batches.size(), sites.loader_length);
    }
  }
}

Program EvaluationLoop::batches(const LoaderSettings& loader, int64_t batches_max, bool sanity) {
  Progress& progress = training_.progress;
  OwnBatches given;
  co_await training_.loaders().count_batches(loader, given);
  const RankBatches batches(loader, training_.loaders().policy(role()), progress.epoch, given);
  progress.num_batches = std::min(batches_max, limit().of(batches.size()));
  DataFeed feed(training_.rank(), loader, given.size.value_or(loader.batch_size));
  const std::string hooks = "on_" + prefix() + "_batch_";
  const std::string begin = hooks + "start";
  const std::string end = hooks + "end";
  const std::string step = prefix() + "_step";
  const std::string epoch_end = prefix() + "_epoch_end";
  const bool keeps_outputs = training_.hooks().has(epoch_end);
  training_.loaders().note_batches(loader, progress.num_batches);
  int64_t& kind = kinds_[{progress.dataloader_idx, sanity}];
  kind = kind == 0 ? training_.periods().new_kind() : kind;
  RepeatedEvaluation repeated(training_, {loader, progress.num_batches, feed.ahead(), kind},
                              decisions_);
  const Repetition& repetition = training_.program().repetition;
  const bool repeats = training_.stage() == Stage::fit && repetition.batches &&
                       (repetition.ranks_are_in_step || sanity);
  int64_t number = 0;
  for (; training_.loaders().goes_on(loader, number < progress.num_batches); ++number) {
    if (repeats) {
      const int64_t left_out = repeated.left_out(number);
      feed.leave_out(left_out);
      seen_batches_[progress.dataloader_idx] +=
          sanity || !training_.program().trainer.has_logger ? 0 : left_out;
      number += left_out;
    }
    const Batch batch = batches.at(number);
    co_await feed.next(batch.size(), number, progress.num_batches);
    progress.batch_idx = number;
    progress.batch_size = batch.size();
    progress.is_last_batch = number + 1 == progress.num_batches;
    results_.begin_batch(loaders().size() > 1 ? progress.dataloader_idx
                                              : LoggedResults::only_loader);
    co_await training_.transfer_batch();
    training_.batches().batch().enter(batch, loader);
    co_await training_.hook(begin);
    co_await training_.batches().evaluate(step);
    co_await training_.hook(end);
    training_.batches().batch().leave();
    co_await log_batch(sanity);
    if (!keeps_outputs) {
      training_.outputs().clear();
    }
    training_.termination().leave_if_come(progress.is_last_batch);
  }
  if (!training_.membership().counts_samples) {
    co_return;
  }
  training_.log().samples.push_back(
      {sanity ? "sanity" : prefix(), progress.epoch, progress.dataloader_idx, {batches, number}});
}

// evaluation_loop.py, _store_dataloader_outputs and on_run_end: what a loader's batches have logged
// is reduced before the hook of the epoch's end, but in the sanity check after it, and only where
// it belongs to no loader of several.
Program EvaluationLoop::end_epoch(bool sanity) {
  const std::string outputs_end = prefix() + "_epoch_end";
  const std::string epoch_end = "on_" + prefix() + "_epoch_end";
  results_.end_batches();
  results_.leave_loaders();
  co_await training_.hook_with_outputs(outputs_end);
  co_await training_.hook(epoch_end);
  if (kind_ != EvaluationKind::predict) {
    co_await training_.hook_of_1_x("on_epoch_end");
  }
  co_await results_.end_epoch(!sanity);
  std::map<std::string, double> values = results_.take_epoch_values();
  if (!sanity) {  // a hook that read callback_metrics has had them reduced there, too
    training_.logger_rows().add(std::move(values), std::nullopt);
  }
}

// Rows of batches have a number for each loader, over all evaluations of the loop, and no epoch.
Program EvaluationLoop::log_batch(bool sanity) {
  co_await results_.show_progress();
  if (!sanity && training_.program().trainer.has_logger) {
    int64_t& seen = seen_batches_[training_.progress.dataloader_idx];
    training_.logger_rows().add(co_await results_.values_for_loggers(), seen++);
  }
}

namespace {

Stage stage_of(EvaluationKind kind) {
  switch (kind) {
    case EvaluationKind::validate: return Stage::validate;
    case EvaluationKind::test: return Stage::test;
    case EvaluationKind::predict: return Stage::predict;
  }
  return Stage::validate;
}

}  // namespace

Program EvaluationLoop::run(int64_t batches_max, bool sanity) {
  if (!is_enabled()) {
    co_return;
  }
  co_await set_up();
  LoggedResults* const outer = std::exchange(training_.results, &results_);
  Variable::List outer_outputs = std::move(training_.outputs());
  training_.outputs().clear();
  training_.statements().begin_evaluation(stage_of(kind_), sanity);
  const std::string on = "on_" + prefix();
  const std::string eval = on + "_model_eval";
  const std::string start = on + "_start";
  const std::string epoch_start = on + "_epoch_start";
  const std::string end = on + "_end";
  const std::string train = on + "_model_train";
  co_await training_.hook(eval);
  if (training_.program().trainer.lightning < Version{2, 1, 0}) {
    co_await training_.batches().optimizers().release_gradients(
        false, training_.stage());  // in the middle of an accumulation, too
  }
  co_await training_.hook(start);
  if (kind_ != EvaluationKind::predict) {
    co_await training_.hook_of_1_x("on_epoch_start");
  }
  co_await training_.hook(epoch_start);
  for (size_t index = 0; index < loaders().size(); ++index) {
    training_.progress.dataloader_idx = static_cast<int64_t>(index);
    co_await batches(loaders()[index], batches_max, sanity);
    results_.end_batches();
    if (!sanity) {
      co_await results_.reduce_epoch(true);
    }
  }
  training_.progress.dataloader_idx = 0;
  co_await end_epoch(sanity);
  if (training_.stage() == Stage::fit && !sanity) {
    training_.note_validation();
    co_await training_.callbacks().run(CallbackHook::validation_end);
  }
  co_await training_.hook(end);
  const bool restores_by_itself =
      kind_ == EvaluationKind::predict && training_.program().trainer.lightning >= Version{2, 2, 0};
  if (!restores_by_itself) {
    co_await training_.hook(train);
  }
  training_.statements().end_evaluation();
  training_.results = outer;
  training_.outputs() = std::move(outer_outputs);
}

Program evaluate(Training& training, EvaluationKind kind) {
  EvaluationLoop loop(training, kind);
  co_await training.begin_stage(stage_of(kind));
  co_await training.begin_loop();
  co_await loop.run(TrainerSettings::no_limit, false);
  co_await training.end_stage();
}

}  // namespace lockstep
