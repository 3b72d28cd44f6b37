#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/radam.py
struct RAdam : OptimizerOfTorch {
  static constexpr std::string_view name = "RAdam";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"betas", &OptimizerSettings::beta1, &OptimizerSettings::beta2},
      {"eps", &OptimizerSettings::eps},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"decoupled_weight_decay", nullptr, nullptr, &OptimizerSettings::decoupled_weight_decay},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr MomentumArgument momentum = MomentumArgument::first_beta;
  static constexpr int group_entries = 10;

  static OptimizerSettings defaults() { return {.kind = OptimizerKind::radam, .lr = 1e-3}; }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    return states_like(parameter, 2);
  }
  // The foreach implementation drops the decayed gradients before it makes the roots. From tensor
  // to tensor: the corrected moment, the same times the rate, the root and its quotient.
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    return {1, 4 + (adds_decay(settings) || settings.maximize ? 1 : 0)};
  }

  /// What the update is multiplied with; 0: too few steps to know the variance.
  static double rectification(const OptimizerSettings& settings, int64_t step) {
    const double beta2 = settings.beta2;
    const auto t = static_cast<double>(step);
    const double infinite = 2 / (1 - beta2) - 1;
    const double length = infinite - 2 * t * std::pow(beta2, t) / correction(beta2, step);
    return length > 5.0 ? std::sqrt((length - 4) * (length - 2) * infinite /
                                    ((infinite - 4) * (infinite - 2) * length))
                        : 0;
  }

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 3; }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& moment,
                     Updated<Numbers> updated) {
    decay(settings, updated);
    updated.state[0].approach(updated.gradient, 1 - settings.beta1);
    updated.state[1].scale(settings.beta2);
    updated.state[1].add_product(updated.gradient, updated.gradient, 1 - settings.beta2);
    Numbers change = updated.state[0].clone();
    change.divide(correction(settings.beta1, moment.step));
    change.scale(settings.lr);
    const double rectified = rectification(settings, moment.step);
    if (rectified > 0) {
      Numbers root = updated.state[1].clone();
      root.root();
      root.raise(settings.eps);
      root.divide_into(std::sqrt(correction(settings.beta2, moment.step)));
      change.multiply(root);
      change.scale(rectified);
    }
    updated.parameter.add(change, -1);
  }

  // As Adam's where it is rectified; else the change is an average of gradients.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const SensitivityOfStep& of) {
    const double rectified = rectification(settings, moment.step);
    const double root_correction = std::sqrt(correction(settings.beta2, moment.step));
    const double most = root_correction / std::sqrt(1 - settings.beta2);
    for (size_t i = 0; i < of.gradient.size(); ++i) {
      const double root = (std::sqrt(of.state[1][i]) + settings.eps) / root_correction;
      of.add(i, settings.lr * (rectified > 0 ? rectified * (1 + most) / root : 1));
    }
    // Without rectification no step has a bound of its own: twice the largest gradient is one.
    of.sensitivity.at_most +=
        2 * settings.lr * (rectified > 0 ? rectified * most : of.sensitivity.largest_gradient);
  }
};

}  // namespace lockstep
