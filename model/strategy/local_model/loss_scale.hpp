#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep {

/// A dynamic loss scale, by default that of torch.amp.GradScaler with the arguments that Lightning
/// leaves at their defaults (torch/amp/grad_scaler.py).
class LossScale {
 public:
  struct Options {
    double initial = 65536;
    double growth = 2;
    double backoff = 0.5;
    int64_t growth_interval = 2000;  ///< steps in a row without overflow after which it grows
    int64_t hysteresis = 1;          ///< overflows until it falls, anew whenever it grows
    double smallest = 0;
  };
  /// What a checkpoint holds of it.
  struct State {
    double scale = 0;
    int64_t growth_tracker = 0;
    int64_t hysteresis_tracker = 1;
    bool operator==(const State&) const = default;
  };

  LossScale() : LossScale(Options()) {}
  explicit LossScale(const Options& options)
      : options_(options), state_{options.initial, 0, options.hysteresis} {}

  double scale() const { return state_.scale; }
  /// By which gradients are multiplied: the scale, but under stand_for().
  double factor() const { return state_.scale / divisor_; }
  /// The factor of a backward. The first of them makes the tensor of the scale.
  double scale_loss() {
    has_scaled_ = true;
    return factor();
  }
  bool has_scaled() const { return has_scaled_; }
  /// Which of its steps have been skipped, counted from 0.
  const std::vector<int64_t>& skipped_steps() const { return skipped_; }
  /// What one device does that is compared with others: it skips the steps, ascending, that they
  /// skip, and multiplies by less, because its gradients may be the sum of what they have. So it
  /// does not overflow where they do not.
  struct Others {
    int64_t devices = 1;
    std::vector<int64_t> skipped_steps{};
  };
  void stand_for(Others others) {
    others_ = std::move(others);
    for (divisor_ = 1; divisor_ < static_cast<double>(others_.devices); divisor_ *= 2) {
    }
  }
  /// Whether the step that comes must be skipped. `found`: a gradient is not finite.
  bool skips(bool found) const {
    return found || std::ranges::binary_search(others_.skipped_steps, steps_);
  }

  /// `update()`, behind a step that was taken, or skipped because a gradient was not finite. The
  /// scale is a number in fp32, which stays finite and may become 0.
  void note_step(bool overflowed) {
    if (overflowed) {
      skipped_.push_back(steps_);
      state_.growth_tracker = 0;
      if (--state_.hysteresis_tracker <= 0) {
        state_.scale =
            static_cast<float>(std::max(state_.scale * options_.backoff, options_.smallest));
      }
    } else if (++state_.growth_tracker == options_.growth_interval) {
      const double grown = state_.scale * options_.growth;
      state_.scale = grown <= largest ? static_cast<float>(grown) : state_.scale;
      state_.growth_tracker = 0;
      state_.hysteresis_tracker = options_.hysteresis;
    }
    ++steps_;
  }

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  static constexpr double largest = 3.4028234663852886e38;  ///< finite in fp32

  Options options_;
  State state_;
  double divisor_ = 1;
  int64_t steps_ = 0;
  std::vector<int64_t> skipped_;
  Others others_;
  bool has_scaled_ = false;
};

}  // namespace lockstep
