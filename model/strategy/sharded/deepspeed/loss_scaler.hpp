#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep {

/// DeepSpeed's dynamic loss scale (deepspeed/runtime/fp16/loss_scaler.py, DynamicLossScaler), or a
/// static one.
class LossScaler {
 public:
  struct Options {
    double loss_scale = 0;  ///< 0: dynamic
    int64_t initial_scale_power = 16;
    int64_t window = 1000;  ///< steps without overflow after which the scale doubles
    int64_t hysteresis = 2;
    double min_loss_scale = 1;
  };

  explicit LossScaler(const Options& options)
      : options_(options),
        scale_(options.loss_scale > 0
                   ? options.loss_scale
                   : static_cast<double>(int64_t{1} << options.initial_scale_power)),
        hysteresis_(options.hysteresis) {}

  double scale() const { return scale_; }
  int64_t skipped_steps() const { return skipped_; }

  /// A step has been taken, or skipped because a gradient was not finite.
  void note_step(bool overflowed) {
    skipped_ += overflowed ? 1 : 0;
    if (options_.loss_scale > 0) {
      ++steps_;
      return;
    }
    if (overflowed) {
      if (options_.hysteresis == 1 || hysteresis_ == 1) {
        scale_ = std::max(scale_ / 2, options_.min_loss_scale);
      } else {
        --hysteresis_;
      }
      last_overflow_ = steps_;
    } else if ((steps_ - last_overflow_) % options_.window == 0) {
      hysteresis_ = options_.hysteresis;
      scale_ *= 2;
    }
    ++steps_;
  }

 private:
  Options options_;
  double scale_;
  int64_t hysteresis_;
  int64_t steps_ = 0;
  int64_t last_overflow_ = -1;
  int64_t skipped_ = 0;
};

}  // namespace lockstep
