#include "model/trainer/loop/fit_periods.hpp"

#include "model/trainer/loop/schedule_end.hpp"

namespace lockstep {

FitPeriods::FitPeriods(Training& training)
    : training_(training),
      decisions_(training.program().repetition, places_that_decide(training)),
      kind_(training.periods().new_kind()),
      mirrored_kind_(training.periods().new_kind()) {}

void FitPeriods::begin(int64_t batches) {
  schedules_end_ = batches_until_schedule_ends(training_, batches);
  std::optional<RepeatedEpochs> epochs = repeated_epochs(training_, batches, schedules_end_);
  if (epochs && training_.progress.resumed_batch == 0) {
    epochs_.emplace(*std::move(epochs));
  }
}

// Under manual optimization the program decides how many steps there are.
bool FitPeriods::counts_by_strategy() const {
  return !training_.program().trainer.automatic_optimization && training_.strategy().counts_steps();
}

void FitPeriods::leave_out_epochs() {
  const bool in_step = training_.program().repetition.ranks_are_in_step || go_on_together_;
  if (epochs_ && in_step && !counts_by_strategy()) {
    epochs_->leave_out();
  }
}

std::optional<RepeatedBatches> FitPeriods::batches_of(const Epoch& epoch) {
  const TrainingProgram& program = training_.program();
  const bool knows_steps =
      program.trainer.automatic_optimization ||
      (program.trainer.max_steps == TrainerSettings::no_limit && save_every(program) == 0);
  if (!program.repetition.batches || !knows_steps || epoch.is_resumed || counts_by_strategy()) {
    return std::nullopt;
  }
  const Progress& progress = training_.progress;
  RepeatedBatches::Schedule schedule = RepeatedBatches::schedule_of(training_, schedules_end_);
  schedule.kind = kind_;
  schedule.ahead = epoch.ahead;
  schedule.check_every = epoch.check_every;
  schedule.check_phase = epoch.check_phase;
  return RepeatedBatches(
      training_, schedule,
      decisions_.windows_of_pass({progress.epoch, 0, progress.global_step, progress.num_batches},
                                 schedule.window));
}

MirroredSteps FitPeriods::mirrored_steps() {
  const TrainingProgram& program = training_.program();
  const bool is_step = program.trainer.accumulate_grad_batches == 1;
  return {training_, mirrored_kind_, program.repetition.batches && is_step};
}

// Where ranks take unequal numbers of batches, they are in different epochs behind the first.
void FitPeriods::end_epoch(bool go_on_together) {
  go_on_together_ = go_on_together;
  const Repetition& repetition = training_.program().repetition;
  const bool epochs_matter = repetition.epochs_matter || training_.strategy().counts_steps();
  if (!repetition.ranks_are_in_step && epochs_matter) {
    training_.periods().end();
  }
}

// They have begun different numbers of periods, unless they went on together.
void FitPeriods::end_fit() {
  if (!training_.program().repetition.ranks_are_in_step && !go_on_together_) {
    training_.periods().end();
  }
}

}  // namespace lockstep
