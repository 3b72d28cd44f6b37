#pragma once

#include "model/strategy/exchange/averaging/model_averager.hpp"

namespace lockstep {

/// DiLoCo (arXiv 2311.08105, algorithm 1): replicas train on their own for some steps; then the
/// mean over ranks of (parameters of the last outer step - parameters now) is the gradient of an
/// outer SGD, whose step on the former is where all go on. The inner optimizer keeps its state.
class OuterOptimizer final : public ModelAverager {
 public:
  OuterOptimizer(Replica& replica, const OuterOptimizerOptions& options, int64_t period,
                 int64_t warmup_steps)
      : ModelAverager(replica), options_(options), period_(period), warmup_steps_(warmup_steps) {}

  Program begin(Rank& rank) override;
  Task<Bytes> average(Rank& rank, size_t optimizer) override;
  int64_t kind_of_step(int64_t ahead) const override;
  int64_t place(int64_t ahead) const override;
  int64_t steps_of_cycle() const override { return period_; }
  void leave_out(int64_t steps) override;
  KnownDifference difference() const override;

 private:
  /// What follows a step, counted from 0.
  enum class Turn : uint8_t { nothing, begin, outer_step };
  Turn turn_of(int64_t step) const;
  void step(Rank& rank, const Slice& gradient, Ticket after);

  OuterOptimizerOptions options_;
  int64_t period_;
  int64_t warmup_steps_;
  int64_t steps_ = 0;
  int64_t outer_steps_ = 0;
  Slice outer_;     ///< parameters after the last outer step, in one piece
  Slice momentum_;  ///< of no elements where the outer optimizer has none
};

}  // namespace lockstep
