#include "model/trainer/loop/repeated_batches.hpp"

#include <algorithm>

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

RepeatedBatches::RepeatedBatches(Training& training, const Schedule& schedule)
    : training_(training), schedule_(schedule), windows_(training, 0, schedule.window) {
  if (schedule.log_every > 1) {
    rows_.emplace(training, 1, schedule.window * schedule.log_every);
  }
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
  last_change_ = alike == 0 ? number : last_change_;
}

int64_t RepeatedBatches::left_out(int64_t number) {
  look_for_change(number);
  const auto asked = [&](RepeatedLoop& loop, bool with_logs) {
    const int64_t before = std::max<int64_t>(0, number - loop.length());
    const bool was_alike = last_change_ <= before && next_different(before, with_logs) >= number;
    return loop.left_out(number, was_alike, next_different(number, with_logs));
  };
  if (rows_) {
    if (const int64_t left_out = asked(*rows_, false)) {
      return left_out;
    }
  }
  return asked(windows_, true);
}

}  // namespace lockstep
