#pragma once

#include <algorithm>
#include <cmath>
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
    bool refills_hysteresis = false;  ///< consecutive_hysteresis: at every step without overflow
    /// That of stage 0 (deepspeed/runtime/fp16/fused_optimizer.py, _update_scale): without
    /// hysteresis, a window that begins a step later, and nothing raises at the minimum.
    bool is_of_replicas = false;
  };

  explicit LossScaler(const Options& options)
      : options_(options),
        scale_(options.loss_scale > 0 ? options.loss_scale
                                      : std::ldexp(1.0, static_cast<int>(std::min<int64_t>(
                                                            options.initial_scale_power, 1100)))),
        hysteresis_(options.hysteresis) {}

  double scale() const { return scale_; }
  int64_t skipped_steps() const { return skipped_; }
  /// The first scale is a whole number of Python's, which torch takes up to 64 bits.
  bool is_too_large() const {
    constexpr int64_t largest_power = 63;
    return options_.loss_scale == 0 && !has_moved_ && options_.initial_scale_power > largest_power;
  }
  /// An overflow now would raise: the scale cannot fall any further.
  bool is_at_minimum() const {
    return options_.loss_scale == 0 && !options_.is_of_replicas &&
           (options_.hysteresis == 1 || hysteresis_ == 1) && scale_ == options_.min_loss_scale;
  }

  /// A step has been taken, or skipped because a gradient was not finite.
  void note_step(bool overflowed) {
    skipped_ += overflowed ? 1 : 0;
    if (options_.loss_scale > 0) {
      ++steps_;
      return;
    }
    const int64_t since = steps_ - last_overflow_ - (options_.is_of_replicas ? 1 : 0);
    if (overflowed) {
      if (options_.is_of_replicas || options_.hysteresis == 1 || hysteresis_ == 1) {
        scale_ = std::max(scale_ / 2, options_.min_loss_scale);
        has_moved_ = true;
      } else {
        --hysteresis_;
      }
      last_overflow_ = steps_;
    } else {
      hysteresis_ = options_.refills_hysteresis ? options_.hysteresis : hysteresis_;
      if (since > 0 && since % options_.window == 0) {
        hysteresis_ = options_.hysteresis;
        scale_ *= 2;
        has_moved_ = true;
      }
    }
    ++steps_;
  }

 private:
  Options options_;
  double scale_;
  bool has_moved_ = false;
  int64_t hysteresis_;
  int64_t steps_ = 0;
  int64_t last_overflow_ = -1;
  int64_t skipped_ = 0;
};

}  // namespace lockstep
