#pragma once

#include <cstdint>

#include "model/trainer/callback/callback.hpp"

namespace lockstep {

/// When one rank would stop, from the values that it sees (early_stopping.py,
/// _evaluate_stopping_criteria). Values are fp32, as the tensors of callback_metrics are.
class StoppingCriteria {
 public:
  explicit StoppingCriteria(const EarlyStoppingSettings& settings);

  /// Takes the next value; true where this rank would stop.
  bool stops(double monitored);
  int64_t wait_count() const { return wait_count_; }
  float best_score() const { return best_score_; }
  void restore(float best_score, int64_t wait_count) {
    best_score_ = best_score;
    wait_count_ = wait_count;
  }

 private:
  bool is_better(float value, float than) const;

  const EarlyStoppingSettings& settings_;
  float best_score_;
  int64_t wait_count_ = 0;
};

/// Lightning's EarlyStopping: every rank decides by its own value; the decisions are reduced, so
/// that from 1.9 on any rank stops all, and before that only all of them together.
class EarlyStopping final : public Callback {
 public:
  EarlyStopping(const EarlyStoppingSettings& settings, Training& training);

  bool acts_on(CallbackHook hook) const override;
  Program run(CallbackHook hook) override;
  SavedObject state() const override {
    return {{criteria_.best_score(), static_cast<double>(criteria_.wait_count())}, {}};
  }
  void restore(const SavedObject& saved) override {
    criteria_.restore(static_cast<float>(saved.numbers.at(0)),
                      static_cast<int64_t>(saved.numbers.at(1)));
  }

 private:
  const EarlyStoppingSettings& settings_;
  Training& training_;
  StoppingCriteria criteria_;
  size_t log_;  ///< index into the rank's monitors
};

}  // namespace lockstep
