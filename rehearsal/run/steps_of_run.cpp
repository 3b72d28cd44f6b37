#include "rehearsal/run/steps_of_run.hpp"

#include "rehearsal/run/planned_steps.hpp"

namespace lockstep::cli {

StepsOfRun::StepsOfRun(const OneRun& run, Progress* progress)
    : log_(run.preparation.log), progress_(progress) {
  if (progress_ != nullptr) {
    planned_ = planned_steps(run.preparation);
  }
}

void StepsOfRun::tell() {
  const int64_t steps = log_ == nullptr ? 0 : log_->ranks.front().steps;
  if (progress_ == nullptr || steps == told_) {
    return;
  }
  told_ = steps;
  progress_->step(steps, planned_);
}

std::function<bool()> stop_asked(const OneRun& run, const RunRequest& request) {
  return [deadline = request.deadline, store = run.store,
          steps = StepsOfRun(run, request.progress)]() mutable {
    steps.tell();
    return !store->failure().empty() ||
           (deadline != nullptr && (deadline->passed() || deadline->values()->exceeded()));
  };
}

}  // namespace lockstep::cli
