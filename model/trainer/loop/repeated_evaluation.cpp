#include "model/trainer/loop/repeated_evaluation.hpp"

#include <algorithm>

#include "model/trainer/loop/counted_decisions.hpp"

namespace lockstep {

// Of batches that are prepared the first orders them all, and the last order none.
RepeatedEvaluation::RepeatedEvaluation(Training& training, int64_t batches, int64_t ahead,
                                       int64_t kind)
    : loop_(training, 0, 1),
      first_(ahead > 0 ? 2 : 1),
      last_(batches - 1 - ahead),
      kind_(passes_are_alike(training) ? kind : training.new_kind()) {
  CountedDecisions decisions(training.program().repetition, training.rank().place());
  if (training.program().repetition.batches && !decisions.empty()) {
    const Progress& progress = training.progress;
    decisions_ = decisions.kinds_of_pass({progress.epoch, 0, progress.global_step, batches}, 0);
  }
}

int64_t RepeatedEvaluation::left_out(int64_t number) {
  bool was_alike = number >= first_ && number <= last_;
  int64_t until = std::max(number, last_);
  if (!decisions_.empty()) {
    const int64_t other = next_other_decision(decisions_, number, 1);
    was_alike = was_alike && other > number;
    until = std::min(until, other);
  }
  return loop_.left_out(number, was_alike, until, kind_);
}

}  // namespace lockstep
