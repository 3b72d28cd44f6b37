#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/adamax.py
struct Adamax : OptimizerOfTorch {
  static constexpr std::string_view name = "Adamax";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"betas", &OptimizerSettings::beta1, &OptimizerSettings::beta2},
      {"eps", &OptimizerSettings::eps},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr MomentumArgument momentum = MomentumArgument::first_beta;
  static constexpr int group_entries = 9;

  static OptimizerSettings defaults() { return {.kind = OptimizerKind::adamax, .lr = 2e-3}; }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    return states_like(parameter, 2);
  }
  // The absolute gradients: in place where they are a copy already.
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    return {1, 1 + (adds_decay(settings) || settings.maximize ? 1 : 0)};
  }

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 2; }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& moment,
                     Updated<Numbers> updated) {
    decay(settings, updated);
    updated.state[0].approach(updated.gradient, 1 - settings.beta1);
    Numbers sizes = updated.gradient.clone();
    sizes.absolute();
    sizes.raise(settings.eps);
    updated.state[1].scale(settings.beta2);
    updated.state[1].keep_larger(sizes);
    updated.parameter.add_quotient(updated.state[0], updated.state[1],
                                   -settings.lr / correction(settings.beta1, moment.step));
  }

  // The corrected moment is an average and the divisor a norm (the largest), so that both err by d
  // at most; their quotient is at most (1 - beta1) times the sum of (beta1 / beta2)^j, corrected.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const SensitivityOfStep& of) {
    double sum = 0;
    double term = 1;
    for (int64_t j = 0; j < moment.step && term > sum * 1e-17; ++j) {
      sum += term;
      term *= settings.beta1 / settings.beta2;
    }
    const double most = (1 - settings.beta1) * sum / correction(settings.beta1, moment.step);
    for (size_t i = 0; i < of.gradient.size(); ++i) {
      of.add(i, settings.lr * (1 + most) / of.state[1][i]);
    }
    of.sensitivity.at_most += 2 * settings.lr * most;
  }
};

}  // namespace lockstep
