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
  PeriodStart start;
  start.first = !was_alike;
  start.alike = std::max<int64_t>(0, (until - pass) / length_);
  start.kind = kind;
  return leave_out(pass, start);
}

int64_t RepeatedLoop::left_out(int64_t pass, bool was_alike, int64_t until,
                               const PeriodKinds& kinds) {
  PeriodStart start;
  start.first = !was_alike;
  start.alike = std::max<int64_t>(0, (until - pass) / length_);
  start.kinds = &kinds;
  return leave_out(pass, start);
}

int64_t RepeatedLoop::rows_of(const PeriodKinds& kinds, int64_t periods) const {
  int64_t rows = 0;
  for (int64_t period = 0; period < periods;) {
    const int64_t alike = std::min(periods - period, kinds.alike_from(period));
    rows += (*rows_)[kinds.kind_of(period)] * alike;
    period += alike;
  }
  return rows;
}

int64_t RepeatedLoop::leave_out(int64_t pass, PeriodStart start) {
  if (pass % length_ != 0) {
    return 0;
  }
  ProgramMemory memory;
  training_.remember(memory);
  const bool follows = last_ == pass - length_;
  start.level = level_;
  // What this rank decides by counters, rank 0 may not, whose kinds count.
  start.forgets = start.first && !training_.program().repetition.counted.empty();
  start.first = start.first || !follows;
  start.memory = &memory;
  int64_t& rows = training_.log().logger_row_count;
  if (follows && kind_of_last_) {
    (*rows_)[*kind_of_last_] = rows - at_last_.logger_rows;
  }
  const int64_t periods = training_.rank().begins_period(start);
  std::optional<int64_t> rows_with_left_out;  // what kinds depend on is counted below
  kind_of_last_.reset();
  if (start.kinds != nullptr) {
    rows_with_left_out = rows + rows_of(*start.kinds, periods);
    kind_of_last_ =
        periods < start.alike ? std::optional(start.kinds->kind_of(periods)) : std::nullopt;
  }
  if (periods > 0) {
    training_.repeat_since(at_last_, periods);
    rows = rows_with_left_out.value_or(rows);
  }
  last_ = pass + periods * length_;
  at_last_ = training_.counted();
  return periods * length_;
}

}  // namespace lockstep
