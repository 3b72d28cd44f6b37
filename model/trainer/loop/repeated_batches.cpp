#include "model/trainer/loop/repeated_batches.hpp"

#include <algorithm>
#include <numeric>

#include "model/trainer/loop/counted_decisions.hpp"
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
                                 std::vector<int64_t> decisions, RepeatedLoop::RowsByKind& rows)
    : training_(training),
      schedule_(schedule),
      windows_(training, 0, schedule.window, &rows),
      decisions_(std::move(decisions)) {
  const int64_t of_rows = schedule.window * std::max<int64_t>(1, schedule.log_every);
  const int64_t both = std::lcm(of_rows, std::max(schedule.window, schedule.decision_period));
  const int64_t length = schedule.decision_period > 0 && both <= schedule.batches ? both : of_rows;
  if (length > schedule.window && !decisions_.empty()) {
    decided_.emplace(training, 1, length);
  }
  schedule_.kind = passes_are_alike(training) ? schedule.kind : training.new_kind();
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
  schedule.decision_period = training.program().repetition.decision_period;
  schedule.save_every = save_every(training.program());
  schedule.save_phase = progress.global_step;
  if (schedules_end != TrainerSettings::no_limit) {
    schedule.raises_at = schedules_end - progress.batches;
  }
  return schedule;
}

int64_t RepeatedBatches::next_different(int64_t number, bool with_logs) const {
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
  interrupts(next_change_);
  if (has.steps_left <= has.batches / has.window) {
    interrupts(has.steps_left * has.window - 1);
  }
  if (with_logs && has.log_every > 0) {
    interrupts(batch_of_step(number, has.window, has.log_every, has.log_phase));
  }
  if (has.check_every > 0) {
    interrupts(((has.check_phase + number) / has.check_every + 1) * has.check_every - 1 -
               has.check_phase);
  }
  if (has.save_every > 0) {
    interrupts(batch_of_step(number, has.window, has.save_every, has.save_phase));
  }
  return next;
}

void RepeatedBatches::look_for_change(int64_t number) {
  if (number % schedule_.window != 0) {
    return;
  }
  const int64_t alike = training_.strategy().steps_alike(schedule_.window);
  const int64_t most = (schedule_.batches - number) / schedule_.window + 1;
  next_change_ = alike > most ? TrainerSettings::no_limit : number + alike * schedule_.window;
  if (alike == 0) {
    last_change_ = number;
    schedule_.kind = training_.new_kind();
  }
}

int64_t RepeatedBatches::steps_until_row(int64_t window) const {
  const int64_t before = schedule_.log_phase + number_ / schedule_.window + window;
  return schedule_.log_every - before % schedule_.log_every;
}

int64_t RepeatedBatches::kind_of(int64_t window) const {
  const bool gives_row = schedule_.log_every > 0 && steps_until_row(window) == 1;
  return schedule_.kind << 1 | (gives_row ? 1 : 0);
}

int64_t RepeatedBatches::alike_from(int64_t window) const {
  return schedule_.log_every > 0 ? std::max<int64_t>(1, steps_until_row(window) - 1)
                                 : schedule_.batches;
}

// Between decisions, rows of the logger are a difference; a loop around it has them in itself.
int64_t RepeatedBatches::left_out_by(RepeatedLoop& loop, int64_t number, bool with_logs) {
  const int64_t before = std::max<int64_t>(0, number - loop.length());
  const int64_t other = next_other_decision(decisions_, number, loop.length());
  const bool was_alike = last_change_ <= before && next_different(before, with_logs) >= number &&
                         (decisions_.empty() || other >= number + loop.length());
  const int64_t next = next_different(number, with_logs);
  if (decisions_.empty()) {
    return loop.left_out(number, was_alike, next, *this);
  }
  return loop.left_out(number, was_alike, std::min(next, other), schedule_.kind << 1);
}

int64_t RepeatedBatches::left_out(int64_t number) {
  look_for_change(number);
  number_ = number;
  if (decided_) {
    if (const int64_t left_out = left_out_by(*decided_, number, false)) {
      return left_out;
    }
  }
  return left_out_by(windows_, number, !decisions_.empty());
}

}  // namespace lockstep
