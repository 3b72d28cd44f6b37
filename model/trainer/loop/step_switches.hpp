#pragma once

#include <optional>
#include <utility>

#include "model/strategy/strategy.hpp"

namespace lockstep {

/// What the forwards and backwards of a batch are asked for beside the batch itself: by Lightning
/// for each batch, and by statements around them or of the module.
class StepSwitches {
 public:
  /// `automatic`: Lightning optimizes.
  explicit StepSwitches(bool automatic) : automatic_(automatic) {}

  /// A training batch begins, which steps or not, and whose loss is multiplied. `in_full`: as of
  /// StepOptions.
  void begin_batch(bool engine_steps, bool synchronise, double loss_factor, bool in_full) {
    engine_steps_ = engine_steps;
    in_full_ = in_full;
    synchronise_ = synchronise;
    loss_factor_ = loss_factor;
  }
  void end_batch() { synchronise_ = true; }
  bool engine_steps() const { return engine_steps_; }

  /// no_sync and toggle_model. Each gives what was set before, to be set again.
  bool set_synchronise(bool synchronise) { return std::exchange(synchronise_, synchronise); }
  bool synchronises() const { return synchronise_; }
  std::optional<size_t> set_toggled(std::optional<size_t> optimizer) {
    return std::exchange(toggled_, optimizer);
  }
  std::optional<size_t> toggled() const { return toggled_; }
  void set_requires_gradient_sync(bool requires_it) { requires_gradient_sync_ = requires_it; }

  /// Of the next forward or backward; `trains`: gradients will be asked for.
  StepOptions options(bool trains) const;

 private:
  bool automatic_;
  bool engine_steps_ = true;  ///< in this batch; Lightning may count otherwise
  bool synchronise_ = true;
  bool requires_gradient_sync_ = true;  ///< what set_requires_gradient_sync has set
  double loss_factor_ = 1;
  bool in_full_ = false;
  std::optional<size_t> toggled_;  ///< the optimizer of the toggle_model around
};

}  // namespace lockstep
