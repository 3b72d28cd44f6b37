#pragma once

#include "model/strategy/exchange/averaging/model_averager.hpp"

namespace lockstep {

/// The mean of all ranks' parameters in some steps of an optimizer: at the first behind the
/// warm-up, and from there every `period` steps (model_averaging/averagers.py).
class PeriodicModelAverager final : public ModelAverager {
 public:
  PeriodicModelAverager(Replica& replica, int64_t period, int64_t warmup_steps)
      : ModelAverager(replica), period_(period), warmup_steps_(warmup_steps) {}

  Task<Bytes> average(Rank& rank, size_t optimizer) override;
  int64_t kind_of_step(int64_t ahead) const override;
  int64_t place(int64_t ahead) const override;
  int64_t steps_of_cycle() const override { return period_; }
  void leave_out(int64_t steps) override;
  KnownDifference difference() const override;

 private:
  bool averages_in(int64_t step) const;

  int64_t period_;
  int64_t warmup_steps_;
  int64_t steps_ = 0;
  int64_t last_ = 0;  ///< steps at the last averaging
  int64_t averagings_ = 0;
};

}  // namespace lockstep
