#include "model/trainer/loop/mirrored_steps.hpp"

namespace lockstep {

namespace {
/// Those that train know how many come.
constexpr int64_t without_end = TrainerSettings::no_limit / 2;
}  // namespace

MirroredSteps::MirroredSteps(Training& training, int64_t kind, bool tells)
    : training_(training),
      loop_(training, period_level::batches, {.steps_most = 1, .mirrors = true}),
      kind_(training.periods().kind_of({kind})),
      tells_(tells) {}

void MirroredSteps::begin() {
  if (tells_) {
    next_ += loop_.left_out(next_, true, without_end, kind_);
    ++next_;
  }
}

void MirroredSteps::end(bool exchanges_gradients) {
  if (exchanges_gradients) {
    training_.log().samples_of_steps.push_back(RankLog::mirrored_step);
  }
}

}  // namespace lockstep
