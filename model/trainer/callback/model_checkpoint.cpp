#include "model/trainer/callback/model_checkpoint.hpp"

#include <stdexcept>

#include "model/trainer/callback/monitor.hpp"
#include "model/trainer/loop/training.hpp"

namespace lockstep {

namespace {
// Python's pickle of a bool: protocol, opcode, end.
constexpr double pickled_true[] = {0x80, 0x04, 0x88, 0x2e};
constexpr double pickled_false[] = {0x80, 0x04, 0x89, 0x2e};
}  // namespace

ModelCheckpoint::ModelCheckpoint(const ModelCheckpointSettings& settings, Training& training)
    : settings_(settings),
      training_(training),
      best_(settings.mode, settings.save_top_k),
      log_(training.log().checkpoints.size()),
      monitor_(add_monitor(training.log(), "ModelCheckpoint", settings.monitor, settings.site)) {
  training.log().checkpoints.push_back(
      {settings.monitor, settings.site, settings.added_by_trainer, {}, {}, {}, {}, 0});
}

CheckpointLog& ModelCheckpoint::log() const { return training_.log().checkpoints[log_]; }

bool ModelCheckpoint::acts_on(CallbackHook hook) const {
  const bool saves = !training_.program().trainer.fast_dev_run;
  switch (hook) {
    case CallbackHook::setup: return true;
    case CallbackHook::train_batch_end: return saves && settings_.every_n_train_steps > 0;
    case CallbackHook::train_epoch_end: return saves && saves_on_train_epoch_end();
    case CallbackHook::validation_end: return saves && !saves_on_train_epoch_end();
    case CallbackHook::train_end:
      return saves && settings_.save_last != SaveLast::no &&
             training_.program().trainer.lightning >= Version{2, 5, 3};
    default: return false;
  }
}

Program ModelCheckpoint::run(CallbackHook hook) {
  switch (hook) {
    case CallbackHook::setup: co_await send_folder(); break;
    case CallbackHook::train_batch_end: co_await at_batch_end(); break;
    case CallbackHook::train_epoch_end: co_await at_end_of_epoch(); break;
    case CallbackHook::validation_end:
      if (deferred_ && !has_saved_this_step()) {
        co_await save_deferred();
      } else {
        co_await at_end_of_epoch();
      }
      break;
    default:
      if (last_saved_.empty()) {
        co_await save_last();
      }
  }
  publish();
}

// In this order; best_model_score follows from the others.
SavedObject ModelCheckpoint::state() const {
  SavedObject saved;
  saved.texts = {settings_.folder, best_path_, last_path_};
  for (const auto& [file, score] : best_.kept()) {
    saved.texts.push_back(file);
    saved.numbers.push_back(score);
  }
  return saved;
}

// load_state_dict: a folder of its own forgets what another held.
void ModelCheckpoint::restore(const SavedObject& saved) {
  best_path_ = saved.texts.at(1);
  if (saved.texts.front() != settings_.folder) {
    return;
  }
  last_path_ = saved.texts.at(2);
  for (size_t kept = 0; kept < saved.numbers.size(); ++kept) {
    best_.add(saved.texts.at(3 + kept), saved.numbers[kept]);
  }
  publish();
}

void ModelCheckpoint::publish() {
  CheckpointLog& log = this->log();
  log.best = settings_.monitor.empty() ? best_path_ : best_.best();
  log.best_score = best_.best_score();
  log.kept.assign(best_.kept().begin(), best_.kept().end());
  log.last = last_path_;
}

// Rank 0's folder holds for all, as a pickled text.
Program ModelCheckpoint::send_folder() {
  if (training_.distributed()) {
    const TensorPointer text = training_.collectives().object_tensor(
        pickled_bytes_of_text(static_cast<int64_t>(settings_.folder.size())));
    co_await training_.collectives().broadcast_object(
        text, settings_.folder_site[static_cast<size_t>(training_.stage())]);
  }
}

bool ModelCheckpoint::has_saved_this_step() const {
  return last_step_saved_ == training_.progress.global_step;
}

bool ModelCheckpoint::saves_on_train_epoch_end() const {
  const TrainerSettings& trainer = training_.program().trainer;
  if (settings_.save_on_train_epoch_end) {
    return *settings_.save_on_train_epoch_end;
  }
  return trainer.check_val_every_n_epoch == 1 &&
         (!training_.has_validation() || trainer.validates_whole_epochs());
}

bool ModelCheckpoint::will_validate() const {
  const int64_t every = training_.program().trainer.check_val_every_n_epoch;
  return training_.has_validation() && (every == 0 || (training_.progress.epoch + 1) % every == 0);
}

bool ModelCheckpoint::is_due_by_epoch() const {
  return settings_.every_n_epochs >= 1 &&
         (training_.progress.epoch + 1) % settings_.every_n_epochs == 0;
}

bool ModelCheckpoint::monitors_missing_metric() const {
  return !settings_.monitor.empty() && training_.log().metrics.count(settings_.monitor) == 0;
}

// From 2.5.5 on a save that needs a value of validation waits for it.
Program ModelCheckpoint::at_batch_end() {
  if (training_.progress.global_step % settings_.every_n_train_steps != 0) {
    co_return;
  }
  co_await training_.publish_step_metrics();
  if (training_.program().trainer.lightning >= Version{2, 5, 5} && !settings_.monitor.empty()) {
    const bool validates_now =
        !saves_on_train_epoch_end() && training_.progress.is_last_batch && will_validate();
    if (monitors_missing_metric() || validates_now) {
      deferred_ = true;
      co_return;
    }
  }
  if (!has_saved_this_step()) {
    co_await save_top_k();
    co_await save_last();
  }
}

// From 2.5.3 on `last` is written where something else was.
Program ModelCheckpoint::at_end_of_epoch() {
  if (has_saved_this_step()) {
    co_return;
  }
  if (is_due_by_epoch()) {
    co_await save_top_k();
  }
  const bool always = training_.program().trainer.lightning < Version{2, 5, 3};
  const bool links = settings_.save_last == SaveLast::link && !last_saved_.empty();
  if (always || has_saved_this_step() || links) {
    co_await save_last();
  }
}

Program ModelCheckpoint::save_deferred() {
  co_await save_top_k();
  co_await save_last();
  deferred_ = false;
}

Program ModelCheckpoint::save_top_k() {
  if (settings_.save_top_k == 0) {
    co_return;
  }
  if (settings_.monitor.empty()) {
    co_await save_newest();
    co_return;
  }
  const std::map<std::string, double>& metrics = training_.log().metrics;
  const auto found = metrics.find(settings_.monitor);
  if (found != metrics.end()) {
    const double value = found->second;
    co_await save_monitored(value);
  } else if (training_.has_validated()) {
    raise_missing_monitor(training_, "ModelCheckpoint", settings_.monitor, settings_.site);
  }
}

Program ModelCheckpoint::save_newest() {
  const std::string file = co_await free_name(name(), best_path_);
  const std::string previous = std::exchange(best_path_, file);
  co_await save(file);
  if (settings_.save_top_k == 1) {
    remove(previous, file);
  }
}

Program ModelCheckpoint::save_monitored(double value) {
  const bool saves = co_await is_good_enough(value);
  if (!saves) {
    co_return;
  }
  const std::string dropped = best_.drop_worst().value_or("");
  const std::string file = co_await free_name(name(), dropped);
  best_.add(file, value);
  co_await save(file);
  remove(dropped, file);
}

// check_monitor_top_k: with room a rank does not ask the others.
Task<bool> ModelCheckpoint::is_good_enough(double value) {
  const bool room = best_.has_room();
  const bool own = room || best_.beats_worst(value);
  bool saves = own;
  if (!room) {
    saves = co_await training_.collectives().reduce_boolean_decision(own, true, settings_.site);
  }
  training_.log().monitors[monitor_].add(
      {training_.progress.epoch, training_.progress.global_step, value, own, saves});
  co_return saves;
}

Program ModelCheckpoint::save_last() {
  if (settings_.save_last == SaveLast::no) {
    co_return;
  }
  const CheckpointName last{"last", settings_.auto_insert_metric_name};
  std::string file = last.of(0, 0, {});
  if (training_.program().trainer.lightning >= Version{2, 0, 0}) {
    file = co_await free_name(last, last_path_);
  }
  const std::string previous = std::exchange(last_path_, file);
  if (settings_.save_last == SaveLast::link && !last_saved_.empty() && settings_.save_top_k != 0) {
    files().insert(path_of(file));
    co_await training_.checkpoints().keep(path_of(file), settings_.save_weights_only);
    co_await training_.collectives().barrier(settings_.save_site);
  } else {
    co_await save(file, path_of(file));
  }
  remove(previous, file);
}

Task<std::string> ModelCheckpoint::free_name(CheckpointName name, std::string own) {
  const int64_t epoch = training_.progress.epoch;
  const int64_t step = training_.progress.global_step;
  const std::map<std::string, double>& metrics = training_.log().metrics;
  std::string file;
  try {
    file = name.of(epoch, step, metrics);
  } catch (const std::invalid_argument& error) {
    throw ProgramException(settings_.site, error.what());
  }
  if (settings_.enable_version_counter) {
    bool taken = co_await file_exists(file);
    for (int64_t version = 1; taken && file != own; ++version) {
      file = name.of(epoch, step, metrics, version);
      taken = co_await file_exists(file);
    }
  }
  co_return file;
}

// What it saves then is the newest without a metric in its name (saves_alike): the last one counts.
void ModelCheckpoint::go_on_from(int64_t step) {
  const int64_t every = settings_.every_n_train_steps;
  const int64_t last = every == 0 ? 0 : training_.progress.global_step / every * every;
  if (last <= step) {
    return;
  }
  last_step_saved_ = last;
  if (settings_.save_top_k != 0) {
    const std::string file = name().of(training_.progress.epoch, last, training_.log().metrics);
    const std::string previous = std::exchange(best_path_, file);
    files().insert(path_of(file));
    last_saved_ = file;
    if (settings_.save_top_k == 1) {
      remove(previous, file);
    }
  }
  if (settings_.save_last != SaveLast::no &&
      (settings_.save_last != SaveLast::link || settings_.save_top_k == 0)) {
    last_saved_ = last_path_;
  }
}

// Several of these callbacks may write into one folder.
std::set<std::string>& ModelCheckpoint::files() { return training_.checkpoints().files(); }

std::string ModelCheckpoint::path_of(const std::string& file) const {
  return settings_.folder + "/" + file;
}

// Only rank 0 looks; until 2.6 it sent the answer as a pickled object.
Task<bool> ModelCheckpoint::file_exists(std::string file) {
  Rank& rank = training_.rank();
  const bool here = rank.place().rank.value == 0 && files().count(path_of(file)) != 0;
  if (!training_.distributed()) {
    co_return files().count(path_of(file)) != 0;
  }
  if (training_.program().trainer.lightning >= Version{2, 6, 0}) {
    co_return co_await training_.collectives().reduce_boolean_decision(here, false,
                                                                       settings_.exists_site);
  }
  const TensorPointer answer = training_.collectives().object_tensor(pickled_bytes_of_bool);
  rank.write(answer->slice, here ? Values::of(DType::uint8, pickled_true)
                                 : Values::of(DType::uint8, pickled_false));
  co_await training_.collectives().broadcast_object(answer, settings_.exists_site);
  const Values sent = rank.read(answer->slice);
  co_return sent.integer(2) == static_cast<int64_t>(pickled_true[2]);
}

Program ModelCheckpoint::save(std::string file, std::string last) {
  co_await training_.checkpoints().save(settings_.save_site, settings_.save_weights_only,
                                        static_cast<int64_t>(path_of(file).size()), last);
  files().insert(path_of(file));
  last_step_saved_ = training_.progress.global_step;
  last_saved_ = file;
  ++log().saved;
}

void ModelCheckpoint::remove(const std::string& previous, const std::string& current) {
  if (!previous.empty() && previous != current) {
    files().erase(path_of(previous));
  }
}

}  // namespace lockstep
