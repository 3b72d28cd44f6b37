#include "model/trainer/loop/repeated_loop.hpp"

#include <algorithm>

namespace lockstep {

bool passes_are_alike(Training& training) {
  const Repetition& repetition = training.program().repetition;
  const TrainerSettings& settings = training.program().trainer;
  return repetition.epochs && repetition.counted.empty() && settings.reload_every_n_epochs == 0 &&
         training.strategy().steps_alike(settings.accumulate_grad_batches) == all_steps;
}

int64_t RepeatedLoop::left_out(int64_t pass, bool was_alike, int64_t until, int64_t kind) {
  PeriodStart start{level_, !was_alike, std::max<int64_t>(0, (until - pass) / length_)};
  start.kind = kind;
  return leave_out(pass, start);
}

int64_t RepeatedLoop::left_out(int64_t pass, bool was_alike, std::span<const int64_t> kinds) {
  PeriodStart start{level_, !was_alike, std::ssize(kinds)};
  start.kinds = kinds;
  return leave_out(pass, start);
}

int64_t RepeatedLoop::leave_out(int64_t pass, PeriodStart start) {
  if (pass % length_ != phase_) {
    return 0;
  }
  ProgramMemory memory;
  training_.remember(memory);
  start.first = start.first || last_ != pass - length_;
  start.memory = &memory;
  const int64_t periods = training_.rank().begins_period(start);
  if (periods > 0) {
    training_.repeat_since(at_last_, periods);
  }
  last_ = pass + periods * length_;
  at_last_ = training_.counted();
  return periods * length_;
}

}  // namespace lockstep
