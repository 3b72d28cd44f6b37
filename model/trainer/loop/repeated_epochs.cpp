#include "model/trainer/loop/repeated_epochs.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "model/core/random.hpp"
#include "model/scenario/expressions_of.hpp"

namespace lockstep {

namespace {

bool saves_checkpoints(const TrainingProgram& program) {
  return std::ranges::any_of(program.callbacks, [](const CallbackSettings& callback) {
    return std::holds_alternative<ModelCheckpointSettings>(callback);
  });
}

int64_t digits_of(int64_t number) { return std::ssize(std::to_string(number)); }

bool hooks_log(const TrainingProgram& program) {
  const std::optional<ProgramSpec>& hooks = program.scenario->program;
  return hooks && (find_statement(*hooks, StatementKind::log) != nullptr ||
                   find_statement(*hooks, StatementKind::log_dict) != nullptr);
}

bool monitors_rates(const TrainingProgram& program) {
  return std::ranges::any_of(program.callbacks, [](const CallbackSettings& callback) {
    const auto* const monitor = std::get_if<LearningRateMonitorSettings>(&callback);
    return monitor != nullptr && monitor->interval != LearningRateMonitorSettings::Interval::epoch;
  });
}

}  // namespace

bool logs_rows(const TrainingProgram& program) {
  return program.trainer.has_logger && program.trainer.log_every_n_steps > 0 &&
         (hooks_log(program) || monitors_rates(program));
}

int64_t rows_shown_from(const TrainingProgram& program, int64_t steps_of_epoch, int64_t raises_at) {
  const TrainerSettings& settings = program.trainer;
  if (!logs_rows(program) || !hooks_log(program) || program.repetition.logs) {
    return TrainerSettings::no_limit;
  }
  const bool many =
      steps_of_epoch == 0 || settings.max_epochs > TrainerSettings::no_limit / steps_of_epoch;
  const bool stops_early = std::ranges::any_of(program.callbacks, [](const auto& callback) {
    return std::holds_alternative<EarlyStoppingSettings>(callback);
  });
  if (stops_early) {
    return 0;
  }
  const int64_t of_epochs = many ? TrainerSettings::no_limit : settings.max_epochs * steps_of_epoch;
  const int64_t steps = std::min({settings.max_steps, raises_at, of_epochs});
  const auto kept = static_cast<int64_t>(RankLog::logger_rows_max);
  return std::max<int64_t>(0, steps - kept * settings.log_every_n_steps);
}

int64_t save_every(const TrainingProgram& program) {
  int64_t every = 0;
  for (const CallbackSettings& callback : program.callbacks) {
    const auto* const checkpoint = std::get_if<ModelCheckpointSettings>(&callback);
    if (checkpoint != nullptr && checkpoint->every_n_train_steps > 0) {
      every = every == 0 ? checkpoint->every_n_train_steps
                         : std::gcd(every, checkpoint->every_n_train_steps);
    }
  }
  return every;
}

namespace {

// The newest is kept, under a name that has its step and is of nothing that was logged.
bool saves_alike(const ModelCheckpointSettings& settings) {
  const std::string name = settings.filename.empty() ? "{epoch}-{step}" : settings.filename;
  bool has_step = false;
  for (size_t at = name.find('{'); at != std::string::npos; at = name.find('{', at + 1)) {
    const std::string part = name.substr(at + 1, name.find_first_of(":}", at) - at - 1);
    has_step = has_step || part == "step";
    if (part != "step" && part != "epoch") {
      return false;
    }
  }
  return settings.monitor.empty() && has_step;
}

}  // namespace

bool saves_alike(const TrainingProgram& program) {
  return !hooks_log(program) && !program.store &&
         std::ranges::all_of(program.callbacks, [](const CallbackSettings& callback) {
           const auto* const checkpoint = std::get_if<ModelCheckpointSettings>(&callback);
           return checkpoint == nullptr || checkpoint->every_n_train_steps == 0 ||
                  saves_alike(*checkpoint);
         });
}

int64_t kind_of_save(const TrainingProgram& program, int64_t steps, int64_t epoch) {
  int64_t which = 0;
  int64_t bit = 1;
  for (const CallbackSettings& callback : program.callbacks) {
    const auto* const checkpoint = std::get_if<ModelCheckpointSettings>(&callback);
    if (checkpoint != nullptr && checkpoint->every_n_train_steps > 0) {
      which += steps % checkpoint->every_n_train_steps == 0 ? bit : 0;
      bit *= 2;
    }
  }
  return which == 0 ? 0 : which << 10 | digits_of(epoch) << 5 | digits_of(steps);
}

bool steps_at(const TrainingProgram& program, int64_t batch, bool is_last) {
  return (batch + 1) % program.trainer.accumulate_grad_batches == 0 ||
         (is_last && !program.accumulates_itself);
}

// An epoch does what another does where neither is cut short, and both stand alike to what comes
// in every n-th epoch or step.
std::optional<RepeatedEpochs> repeated_epochs(Training& training, int64_t batches,
                                              int64_t schedules_end) {
  const TrainingProgram& program = training.program();
  const TrainerSettings& settings = program.trainer;
  const int64_t window = settings.accumulate_grad_batches;
  const bool steps_last = batches % window != 0 && steps_at(program, batches - 1, true);
  const int64_t steps = batches / window + (steps_last ? 1 : 0);
  if (!program.repetition.epochs || settings.check_val_every_n_epoch == 0 ||
      settings.reload_every_n_epochs > 0) {
    return std::nullopt;
  }
  if (!settings.automatic_optimization && save_every(program) > 0) {
    return std::nullopt;  // how many steps there are per epoch is the program's
  }
  const CountedDecisions decisions(program.repetition, {training.rank().place()});
  const bool by_epoch = decisions.uses("epoch") || decisions.uses("global_step");
  if (by_epoch && decisions.uses("batch_idx") && training.has_validation()) {
    return std::nullopt;  // batch_idx is of another loop there
  }
  int64_t length = settings.check_val_every_n_epoch;
  const auto comes_every = [&](int64_t every_n_steps) {
    length = std::lcm(length, every_n_steps / std::gcd(steps, every_n_steps));
  };
  if (program.accumulates_itself) {  // over the ends of epochs
    length = std::lcm(length, window / std::gcd(batches, window));
  }
  for (const CallbackSettings& callback : program.callbacks) {
    const auto* const checkpoint = std::get_if<ModelCheckpointSettings>(&callback);
    if (checkpoint != nullptr) {
      length = std::lcm(length, std::max<int64_t>(1, checkpoint->every_n_epochs));
    }
    if (checkpoint != nullptr && checkpoint->every_n_train_steps > 0) {
      comes_every(checkpoint->every_n_train_steps);
    }
  }
  const int64_t shown =
      steps == 0 ? 0 : rows_shown_from(program, steps, schedules_end / window) / steps;
  const int64_t raises =
      schedules_end == TrainerSettings::no_limit
          ? settings.max_epochs
          : training.progress.epoch + (schedules_end - training.progress.batches) / batches;
  const int64_t end = std::min(raises, shown);
  if (length > settings.max_epochs) {
    return std::nullopt;
  }
  const bool differ = logs_rows(program) && length * steps % settings.log_every_n_steps != 0;
  return RepeatedEpochs(training, {length, end, length * steps, length * batches,
                                   differ ? settings.log_every_n_steps : 0});
}

RepeatedEpochs::RepeatedEpochs(Training& training, const Period& period)
    : training_(training),
      loop_(training, period_level::epochs,
            {period.epochs, steps_most(training.program().trainer, period.steps), period.epochs}),
      period_(period),
      kind_(training.periods().new_kind()),
      decisions_(training.program().repetition, places_that_decide(training)) {
  decides_by_epoch_ = decisions_.uses("epoch") || decisions_.uses("global_step");
}

// The number of steps per epoch, by which decisions are evaluated, is known behind the first.
void RepeatedEpochs::leave_out() {
  const int64_t epoch = training_.progress.epoch;
  const int64_t before = std::max<int64_t>(0, epoch - loop_.length());
  const int64_t last = last_alike();
  const int64_t until = decides_by_epoch_ && epoch == 0 ? 0 : last;
  loop_.left_out(epoch, are_alike(before, epoch), std::min(until, next_kept()), *this);
}

// The first epoch of the period that holds a step which is kept.
int64_t RepeatedEpochs::next_kept() const {
  const int64_t windows = windows_before_kept(training_);
  const TrainingProgram& program = training_.program();
  const int64_t of_period = program.accumulates_itself
                                ? period_.batches / program.trainer.accumulate_grad_batches
                                : period_.steps;
  return windows == TrainerSettings::no_limit || of_period == 0
             ? TrainerSettings::no_limit
             : training_.progress.epoch + windows / of_period * period_.epochs;
}

// On which batches rows of the logger fall, how long the names of checkpoints are, and what is
// decided.
int64_t RepeatedEpochs::kind_of(int64_t period) const {
  const Progress& progress = training_.progress;
  const int64_t epoch = progress.epoch + period * loop_.length();
  const int64_t steps = progress.batches_that_stepped + period * period_.steps;
  std::vector<int64_t> does = decided_in(period);
  does.push_back(lengths_of_names(epoch));
  does.push_back(period_.log_every > 0 ? steps % period_.log_every : 0);
  does.push_back(kind_);
  return training_.periods().kind_of(std::move(does));
}

int64_t RepeatedEpochs::alike_from(int64_t period) const {
  if (period_.log_every > 0) {
    return 1;
  }
  const int64_t epoch = training_.progress.epoch + period * loop_.length();
  const int64_t alike = (last_like(epoch, period_.end) - epoch) / loop_.length();
  if (!decides_by_epoch_ && !training_.strategy().counts_steps()) {
    return std::max<int64_t>(1, alike);
  }
  const std::vector<int64_t> decided = decided_in(period);
  int64_t same = 1;
  while (same < alike && decided_in(period + same) == decided) {
    ++same;
  }
  return same;
}

std::vector<int64_t> RepeatedEpochs::decided_in(int64_t period) const {
  std::vector<int64_t> decided;
  const int64_t first = training_.progress.epoch + period * loop_.length();
  for (int64_t each = 0; decides_by_epoch_ && each < loop_.length(); ++each) {
    decided.push_back(static_cast<int64_t>(decision_of(first + each)));
  }
  training_.strategy().add_place(period * period_.steps, period * period_.batches, decided);
  return decided;
}

// Of all its batches.
uint64_t RepeatedEpochs::decision_of(int64_t epoch) const {
  while (std::ssize(decision_by_epoch_) <= epoch) {
    const int64_t number = std::ssize(decision_by_epoch_);
    uint64_t all = 0;
    for (const int64_t one : decisions_.kinds_of_pass(
             {number, 0, number * steps_of_epoch(), training_.progress.num_batches},
             training_.program().trainer.accumulate_grad_batches)) {
      all = random_key(all, static_cast<uint64_t>(one));
    }
    decision_by_epoch_.push_back(all);
  }
  return decision_by_epoch_[static_cast<size_t>(epoch)];
}

// The present one goes on like those before.
int64_t RepeatedEpochs::steps_of_epoch() const {
  const Progress& progress = training_.progress;
  return progress.epoch == 0 ? 0 : std::max<int64_t>(1, progress.global_step / progress.epoch);
}

// Names of checkpoints, which strategies send, hold the numbers of epoch and step: 5 bits a number.
int64_t RepeatedEpochs::lengths_of_names(int64_t epoch) const {
  if (!saves_checkpoints(training_.program())) {
    return 0;
  }
  const int64_t steps = steps_of_epoch();
  const bool within = save_every(training_.program()) > 0;
  return digits_of(epoch) << 10 | digits_of((epoch + 1) * steps) << 5 |
         (within ? digits_of(epoch * steps) : 0);
}

bool RepeatedEpochs::are_alike(int64_t epoch, int64_t other) const {
  return lengths_of_names(epoch) == lengths_of_names(other);
}

// Behind the last epoch that goes on like the present one, and that max_steps does not cut short.
int64_t RepeatedEpochs::last_alike() const {
  const TrainerSettings& settings = training_.program().trainer;
  const int64_t epoch = training_.progress.epoch;
  int64_t end = std::min(settings.max_epochs, period_.end);
  if (epoch > 0 && settings.max_steps != TrainerSettings::no_limit) {
    end = std::min(end, settings.max_steps / steps_of_epoch());
  }
  return last_like(epoch, end);
}

int64_t RepeatedEpochs::last_like(int64_t epoch, int64_t end) const {
  int64_t last = epoch;
  int64_t differs = end;
  while (last < differs) {  // those between two that are alike are alike as well
    const int64_t middle = last + (differs - last) / 2;
    if (are_alike(epoch, middle)) {
      last = middle + 1;
    } else {
      differs = middle;
    }
  }
  return last;
}

}  // namespace lockstep
