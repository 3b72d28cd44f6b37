#include "model/trainer/loop/step_switches.hpp"

namespace lockstep {

StepOptions StepSwitches::options(bool trains) const {
  StepOptions options;
  options.training = trains;
  options.synchronise = synchronise_ && requires_gradient_sync_;
  options.loss_factor = loss_factor_;
  options.manual = trains && !automatic_;
  options.only_optimizer = toggled_;
  options.in_full = in_full_;
  return options;
}

}  // namespace lockstep
