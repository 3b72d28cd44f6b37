#include "model/strategy/exchange/averaging/periodic_averager.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {

KnownDifference PeriodicModelAverager::difference() const {
  if (averagings_ > 1 || steps_ == last_) {
    return {
        fmt::format("between the averagings of models, every {} steps, replicas differ", period_),
        "", DifferenceKind::of_replicas_for_now};
  }
  const int64_t alone = steps_ - std::max(last_, warmup_steps_);
  return {fmt::format("the models were averaged {} in this run: after the first averaging, behind "
                      "{} steps of warm-up, a period is {} steps, and {} came",
                      averagings_ == 0 ? "never" : "once", warmup_steps_, period_, alone),
          "make model_averaging_period shorter, or the run longer", DifferenceKind::of_replicas};
}

bool PeriodicModelAverager::averages_in(int64_t step) const {
  return step >= warmup_steps_ && (step - warmup_steps_) % period_ == 0;
}

int64_t PeriodicModelAverager::kind_of_step(int64_t ahead) const {
  return averages_in(steps_ + ahead) ? 1 : 0;
}

int64_t PeriodicModelAverager::place(int64_t ahead) const {
  const int64_t step = steps_ + ahead - warmup_steps_;
  return step < 0 ? step : step % period_;
}

void PeriodicModelAverager::leave_out(int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    const bool averages = averages_in(steps_++);
    last_ = averages ? steps_ : last_;
    averagings_ += averages ? 1 : 0;
  }
}

Task<Bytes> PeriodicModelAverager::average(Rank& rank, size_t optimizer) {
  const int64_t step = steps_++;
  if (!averages_in(step)) {
    co_return Bytes{};
  }
  last_ = steps_;
  ++averagings_;
  const std::vector<Slice> values = parameters_of(optimizer, true);
  co_return co_await replace_by_mean(rank, values, world_group, rank.world_size());
}

}  // namespace lockstep
