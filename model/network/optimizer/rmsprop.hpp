#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/rmsprop.py
struct RMSprop : OptimizerOfTorch {
  static constexpr std::string_view name = "RMSprop";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"alpha", &OptimizerSettings::forgetting},
      {"eps", &OptimizerSettings::eps},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"momentum", &OptimizerSettings::momentum},
      {"centered", nullptr, nullptr, &OptimizerSettings::centered},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr MomentumArgument momentum = MomentumArgument::momentum;
  static constexpr int group_entries = 11;

  static OptimizerSettings defaults() {
    return {.kind = OptimizerKind::rmsprop, .lr = 0.01, .forgetting = 0.99};
  }
  /// square_avg, momentum_buffer, grad_avg
  static std::vector<OptimizerState> state(const OptimizerSettings& settings,
                                           const Shape& parameter) {
    return states_like(parameter,
                       1 + (settings.momentum > 0 ? 1 : 0) + (settings.centered ? 1 : 0));
  }
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    const int changed = adds_decay(settings) || settings.maximize ? 1 : 0;
    return {1 + changed, 1 + changed};
  }

  static int gradient_operands(const OptimizerSettings& settings) {
    return settings.centered ? 4 : 3;
  }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& /*moment*/,
                     Updated<Numbers> updated) {
    decay(settings, updated);
    const double alpha = settings.forgetting;
    updated.state[0].scale(alpha);
    updated.state[0].add_product(updated.gradient, updated.gradient, 1 - alpha);
    Numbers root = updated.state[0].clone();
    if (settings.centered) {
      Numbers& mean = updated.state.back();
      mean.approach(updated.gradient, 1 - alpha);
      root.add_product(mean, mean, -1);
    }
    root.root();
    root.raise(settings.eps);
    if (settings.momentum > 0) {
      updated.state[1].scale(settings.momentum);
      updated.state[1].add_quotient(updated.gradient, root, 1);
      updated.parameter.add(updated.state[1], -settings.lr);
    } else {
      updated.parameter.add_quotient(updated.gradient, root, -settings.lr);
    }
  }

  /// The most that |g| over its root can be. Of the centred one: with w the weight of g and u that
  /// of all others, the variance is least where they are all equal, and is then
  /// w g^2 (1 - u - w) / (1 - u).
  static double largest_ratio(const OptimizerSettings& settings, int64_t step) {
    const double own = 1 - settings.forgetting;
    if (!settings.centered) {
      return 1 / std::sqrt(own);
    }
    const double left = std::pow(settings.forgetting, static_cast<double>(step));
    return std::sqrt((left + own) / (own * left));
  }

  // The root is a norm of the gradients with weights of at most 1 in all, the centred one a
  // seminorm. With momentum the quotients of all steps go on adding up.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const SensitivityOfStep& of) {
    const double most = largest_ratio(settings, moment.step);
    const double turns =
        settings.momentum < 1 ? 1 / (1 - settings.momentum) : static_cast<double>(moment.step);
    const double rate = settings.lr * turns;
    for (size_t i = 0; i < of.gradient.size(); ++i) {
      const double mean = settings.centered ? of.state.back()[i] : 0;
      const double variance = std::max(0.0, of.state[0][i] - mean * mean);
      of.add(i, rate * (1 + most) / (std::sqrt(variance) + settings.eps));
    }
    of.sensitivity.at_most += 2 * rate * most;
  }
};

}  // namespace lockstep
