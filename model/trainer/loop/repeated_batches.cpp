#include "model/trainer/loop/repeated_batches.hpp"

#include <algorithm>

#include "model/trainer/loop/repeated_epochs.hpp"

namespace lockstep {

namespace {

// The first batch from `number` on that ends a window after which the number of steps, `phase`
// before this pass, is a multiple of `every`.
int64_t batch_of_step(int64_t number, int64_t window, int64_t every, int64_t phase) {
  const int64_t steps_before = phase + number / window;
  const int64_t steps = (steps_before / every + 1) * every;
  return (number / window + steps - steps_before) * window - 1;
}

}  // namespace

RepeatedBatches::RepeatedBatches(Training& training, const Schedule& schedule,
                                 const std::vector<int64_t>& decisions)
    : training_(training),
      schedule_(schedule),
      windows_(training, period_level::batches,
               {schedule.window, steps_most(training.program().trainer, 1), 0}),
      decided_(decisions, true) {
  schedule_.kind =
      passes_are_alike(training.program()) ? schedule.kind : training.periods().new_kind();
}

RepeatedBatches::Schedule RepeatedBatches::schedule_of(const Training& training,
                                                       int64_t schedules_end) {
  const TrainerSettings& settings = training.program().trainer;
  const Progress& progress = training.progress;
  Schedule schedule;
  schedule.batches = progress.num_batches;
  schedule.window = settings.accumulate_grad_batches;
  schedule.steps_left = settings.max_steps - progress.global_step;
  schedule.log_every = logs_rows(training.program()) ? settings.log_every_n_steps : 0;
  schedule.log_phase = progress.batches_that_stepped;
  const int64_t steps = (schedule.batches + schedule.window - 1) / schedule.window;
  schedule.rows_shown_from =
      rows_shown_from(training.program(), steps, schedules_end / schedule.window);
  schedule.save_every = save_every(training.program());
  schedule.save_phase = progress.global_step;
  schedule.saves_alike = saves_alike(training.program());
  if (schedules_end != TrainerSettings::no_limit) {
    schedule.raises_at = schedules_end - progress.batches;
  }
  return schedule;
}

int64_t RepeatedBatches::next_different(int64_t number) const {
  const Schedule& has = schedule_;
  int64_t next = std::max(number, has.batches - 1 - has.ahead);
  const auto interrupts = [&](int64_t batch) {
    if (batch >= number) {
      next = std::min(next, batch);
    }
  };
  if (has.ahead > 0) {
    interrupts(0);
  }
  interrupts(has.raises_at);
  if (has.steps_left <= has.batches / has.window) {
    interrupts(has.steps_left * has.window - 1);
  }
  if (has.log_every > 0 && has.rows_shown_from != Schedule::no_limit) {
    const int64_t shown = std::max<int64_t>(0, has.rows_shown_from - has.log_phase) * has.window;
    interrupts(batch_of_step(std::max(number, shown), has.window, has.log_every, has.log_phase));
  }
  if (has.check_every > 0) {
    interrupts(((has.check_phase + number) / has.check_every + 1) * has.check_every - 1 -
               has.check_phase);
  }
  if (has.save_every > 0 && !has.saves_alike) {
    interrupts(batch_of_step(number, has.window, has.save_every, has.save_phase));
  }
  return next;
}

int64_t RepeatedBatches::steps_until_row(int64_t window) const {
  const int64_t before = schedule_.log_phase + number_ / schedule_.window + window;
  return schedule_.log_every - before % schedule_.log_every;
}

int64_t RepeatedBatches::save_kind(int64_t window) const {
  const int64_t steps = schedule_.save_phase + number_ / schedule_.window + window + 1;
  return schedule_.save_every > 0 && schedule_.saves_alike
             ? kind_of_save(training_.program(), steps, training_.progress.epoch)
             : 0;
}

std::vector<int64_t> RepeatedBatches::strategy_kind(int64_t window) const {
  std::vector<int64_t> kind;
  training_.strategy().add_step_kind(window, schedule_.window, kind);
  return kind;
}

int64_t RepeatedBatches::kind_of(int64_t window) const {
  const bool gives_row = schedule_.log_every > 0 && steps_until_row(window) == 1;
  std::vector<int64_t> does = strategy_kind(window);
  does.push_back(schedule_.kind);
  does.push_back(decided_.kind_of(number_ / schedule_.window + window));
  does.push_back(gives_row ? 1 : 0);
  does.push_back(save_kind(window));
  return training_.periods().kind_of(std::move(does));
}

int64_t RepeatedBatches::alike_from(int64_t window) const {
  const int64_t until_row = schedule_.log_every > 0
                                ? std::max<int64_t>(1, steps_until_row(window) - 1)
                                : schedule_.batches;
  int64_t alike = std::min(until_row, decided_.alike_from(number_ / schedule_.window + window));
  if (schedule_.save_every > 0 && schedule_.saves_alike) {
    const int64_t before = schedule_.save_phase + number_ / schedule_.window + window;
    const int64_t until_save = schedule_.save_every - 1 - before % schedule_.save_every;
    alike = std::min(alike, std::max<int64_t>(1, until_save));
  }
  if (!training_.strategy().counts_steps()) {
    return alike;
  }
  const std::vector<int64_t> kind = strategy_kind(window);
  int64_t same = 1;
  while (same < alike && strategy_kind(window + same) == kind) {
    ++same;
  }
  return same;
}

int64_t RepeatedBatches::left_out(int64_t number) {
  number_ = number;
  const int64_t length = windows_.length();
  const int64_t before = std::max<int64_t>(0, number - length);
  const bool was_alike = next_different(before) >= number && !decided_.is_break(number / length);
  const int64_t next_break = decided_.next_break(number / length);
  const int64_t kept = windows_before_kept(training_);
  const int64_t next = kept < schedule_.batches
                           ? std::min(next_different(number), number + kept * length)
                           : next_different(number);
  const bool breaks_first = next_break < next / length;
  const int64_t steps_before = training_.progress.global_step;
  const int64_t left_out =
      windows_.left_out(number, was_alike, breaks_first ? next_break * length : next, *this);
  if (left_out > 0) {
    training_.callbacks().go_on_from(steps_before);
  }
  return left_out;
}

}  // namespace lockstep
