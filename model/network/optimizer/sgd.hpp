#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/sgd.py; its arithmetic is sgd_step.
struct Sgd : OptimizerOfTorch {
  static constexpr std::string_view name = "SGD";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"momentum", &OptimizerSettings::momentum},
      {"dampening", &OptimizerSettings::dampening},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"nesterov", nullptr, nullptr, &OptimizerSettings::nesterov},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr std::string_view further[] = {"foreach", "differentiable", "fused"};
  static constexpr MomentumArgument momentum = MomentumArgument::momentum;
  static constexpr int counters = 0;
  static constexpr int group_entries = 10;
  static constexpr Kernel own_kernel = Kernel::sgd_step;

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 1; }
  static OptimizerSettings defaults() { return {.kind = OptimizerKind::sgd, .lr = 1e-3}; }
  static std::vector<OptimizerState> state(const OptimizerSettings& settings,
                                           const Shape& parameter) {
    return states_like(parameter, settings.momentum != 0 ? 1 : 0);
  }
  // Nesterov's direction is a tensor of its own, unless the gradients are a copy already.
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    const int decayed = settings.weight_decay != 0 || settings.maximize ? 1 : 0;
    const int ahead = settings.nesterov && settings.momentum != 0 ? 1 : 0;
    const int negated = settings.maximize && settings.weight_decay != 0 ? 1 : 0;
    return {decayed, decayed + negated + ahead};
  }
  static std::vector<double> scalars(const OptimizerSettings& settings,
                                     const UpdateMoment& moment) {
    return {settings.lr,
            settings.momentum,
            settings.weight_decay,
            static_cast<double>(moment.step),
            settings.dampening,
            settings.nesterov ? 1.0 : 0.0,
            settings.maximize ? 1.0 : 0.0};
  }
};

}  // namespace lockstep
