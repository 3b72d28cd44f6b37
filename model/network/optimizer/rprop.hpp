#pragma once

#include <algorithm>

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/rprop.py
struct Rprop : OptimizerOfTorch {
  static constexpr std::string_view name = "Rprop";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"etas", &OptimizerSettings::eta_minus, &OptimizerSettings::eta_plus},
      {"step_sizes", &OptimizerSettings::least_step, &OptimizerSettings::largest_step},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr MomentumArgument momentum = MomentumArgument::none;
  static constexpr int group_entries = 8;

  static OptimizerSettings defaults() { return {.kind = OptimizerKind::rprop, .lr = 0.01}; }
  /// prev, step_size
  static std::vector<OptimizerState> state(const OptimizerSettings& settings,
                                           const Shape& parameter) {
    return {{elements_of(parameter), 0}, {elements_of(parameter), settings.lr}};
  }
  // Signs, or signs of the gradients that are left; from tensor to tensor the gradient's copy too.
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    return {1, 3 + (settings.maximize ? 1 : 0)};
  }

  // It writes to chosen elements (index_put_), for which DTensor has no rule.
  static std::string_view error_of_distributed(size_t /*dimensions*/) {
    return "NotImplementedError: Operator aten.index_put_.default does not have a sharding "
           "strategy "
           "registered.";
  }

  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& /*moment*/,
                     Updated<Numbers> updated) {
    if (settings.maximize) {
      updated.gradient.negate();
    }
    Numbers& before = updated.state[0];
    Numbers& steps = updated.state[1];
    Numbers factor = updated.gradient.clone();
    factor.multiply(before);
    factor.choose_by_sign(settings.eta_plus, settings.eta_minus, 1);
    steps.multiply(factor);
    steps.keep_above(settings.least_step);
    steps.keep_below(settings.largest_step);
    updated.gradient.drop_where(factor, settings.eta_minus);
    Numbers direction = updated.gradient.clone();
    direction.sign();
    updated.parameter.add_product(direction, steps, -1);
    before.copy(updated.gradient);
  }

  // Only signs count: an error changes nothing until it reaches the smallest gradient of the
  // element so far, and then every step from there on may go the other way, with another size.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const SensitivityOfStep& of) {
    const double longest =
        settings.lr * std::pow(settings.eta_plus, static_cast<double>(moment.step - 1));
    of.sensitivity.at_most += 2 * std::clamp(longest, settings.least_step,
                                             std::max(settings.least_step, settings.largest_step));
    std::vector<float>& inverse = of.sensitivity.carried;  // of the smallest gradient so far
    inverse.resize(of.gradient.size());
    for (size_t i = 0; i < of.gradient.size(); ++i) {
      const double here = std::min(1 / std::abs(of.gradient[i]), of.beyond_any_step);
      inverse[i] = std::max(inverse[i], static_cast<float>(here));
      of.set(i, of.sensitivity.at_most * static_cast<double>(inverse[i]));
    }
  }
};

}  // namespace lockstep
