#include "model/trainer/loop/repeated_evaluation.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep {

namespace {

std::vector<int64_t> decisions_of_pass(const Training& training, int64_t batches,
                                       CountedDecisions& decisions) {
  const Progress& progress = training.progress;
  return training.program().repetition.batches && !decisions.empty()
             ? decisions.kinds_of_pass({progress.epoch, 0, progress.global_step, batches}, 0)
             : std::vector<int64_t>();
}

}  // namespace

// Of batches that are prepared the first orders them all, and the last order none.
RepeatedEvaluation::RepeatedEvaluation(Training& training, const Pass& pass,
                                       CountedDecisions& decisions)
    : training_(training),
      loop_(training, period_level::batches, {}),
      decided_(decisions_of_pass(training, pass.batches, decisions), batches_in_step(pass.loader)),
      first_(pass.ahead > 0 ? 2 : 1),
      last_(pass.batches - 1 - pass.ahead) {
  const bool tells_of_passes = decisions.empty() || batches_in_step(pass.loader);
  if (!tells_of_passes) {
    loop_.forget_where_not_alike();
  }
  kind_ = tells_of_passes && passes_are_alike(training.program()) ? pass.kind
                                                                  : training.periods().new_kind();
}

// What a strategy has begun by its own counting, as a thread of its own, goes on meanwhile.
int64_t RepeatedEvaluation::kind_of(int64_t batch) const {
  std::vector<int64_t> does = {kind_, decided_.kind_of(number_ + batch)};
  training_.strategy().add_step_kind(0, training_.program().trainer.accumulate_grad_batches, does);
  return training_.periods().kind_of(std::move(does));
}

int64_t RepeatedEvaluation::alike_from(int64_t batch) const {
  return decided_.alike_from(number_ + batch);
}

int64_t RepeatedEvaluation::left_out(int64_t number) {
  number_ = number;
  const bool was_alike = number >= first_ && number <= last_ && !decided_.is_break(number);
  const int64_t until = is_between_kept(training_.program(), training_.progress)
                            ? number
                            : std::min(std::max(number, last_), decided_.next_break(number));
  return decided_.are_alike() ? loop_.left_out(number, was_alike, until, kind_of(0))
                              : loop_.left_out(number, was_alike, until, *this);
}

}  // namespace lockstep
