#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// Lion of the package lion-pytorch (Chen et al. 2023), without its Triton kernel.
struct Lion : OptimizerOfTorch {
  static constexpr std::string_view name = "Lion";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"betas", &OptimizerSettings::beta1, &OptimizerSettings::beta2},
      {"weight_decay", &OptimizerSettings::weight_decay}};
  static constexpr std::string_view further[] = {"use_triton", "decoupled_weight_decay"};
  static constexpr MomentumArgument momentum = MomentumArgument::first_beta;
  static constexpr int counters = 0;
  static constexpr int group_entries = 4;

  static OptimizerSettings defaults() {
    return {.kind = OptimizerKind::lion, .lr = 1e-4, .beta2 = 0.99};
  }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    return states_like(parameter, 1);
  }
  // A copy of the moment, and its sum with the gradient. It has no foreach implementation.
  static UpdateTemporaries temporaries(const OptimizerSettings& /*settings*/) {
    return {2, 2, false};
  }

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 2; }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& /*moment*/,
                     Updated<Numbers> updated) {
    updated.parameter.scale(1 - settings.lr * settings.weight_decay);
    Numbers direction = updated.state[0].clone();
    direction.scale(settings.beta1);
    direction.add(updated.gradient, 1 - settings.beta1);
    // DeepSpeed's kernel knows no zero.
    direction.choose_by_sign(1, -1, settings.is_fused ? -1 : 0);
    updated.parameter.add(direction, -settings.lr);
    updated.state[0].scale(settings.beta2);
    updated.state[0].add(updated.gradient, 1 - settings.beta2);
  }

  // A sign turns where the error, which the weights of at most 1 in all keep below d, reaches what
  // it is taken of: beta1 m + (1 - beta1) g, with the moment before this step.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& /*moment*/,
                              const SensitivityOfStep& of) {
    for (size_t i = 0; i < of.gradient.size(); ++i) {
      const double g = of.gradient[i];
      const double before =
          settings.beta2 > 0 ? (of.state[0][i] - (1 - settings.beta2) * g) / settings.beta2 : 0;
      const double sum = settings.beta1 * before + (1 - settings.beta1) * g;
      of.add(i, 2 * settings.lr / std::abs(sum));
    }
    of.sensitivity.at_most += 2 * settings.lr;
  }
};

}  // namespace lockstep
