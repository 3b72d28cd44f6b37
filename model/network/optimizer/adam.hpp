#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/adam.py; its arithmetic is adam_step.
struct Adam : OptimizerOfTorch {
  static constexpr std::string_view name = "Adam";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"betas", &OptimizerSettings::beta1, &OptimizerSettings::beta2},
      {"eps", &OptimizerSettings::eps},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"amsgrad", nullptr, nullptr, &OptimizerSettings::amsgrad},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr std::string_view further[] = {"foreach", "capturable", "differentiable",
                                                 "fused"};
  static constexpr MomentumArgument momentum = MomentumArgument::first_beta;
  static constexpr int group_entries = 12;
  static constexpr Kernel own_kernel = Kernel::adam_step;

  static OptimizerSettings defaults() { return {.kind = OptimizerKind::adam, .lr = 1e-3}; }
  static int gradient_operands(const OptimizerSettings& /*settings*/) {
    return 3;
  }  // lerp_(g), addcmul_(g, g)
  static std::vector<OptimizerState> state(const OptimizerSettings& settings,
                                           const Shape& parameter) {
    return states_like(parameter, settings.amsgrad ? 3 : 2);
  }
  // It divides by the square root of the second moment plus eps: the root is a tensor, and where
  // tensors are updated one by one its quotient is a further one. The foreach implementation drops
  // the decayed gradients before it makes the roots.
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    const bool is_coupled = settings.kind == OptimizerKind::adam && settings.weight_decay != 0;
    return {1, 2 + (is_coupled || settings.maximize ? 1 : 0)};
  }
  static std::vector<double> scalars(const OptimizerSettings& settings,
                                     const UpdateMoment& moment) {
    return {settings.lr,
            settings.beta1,
            settings.beta2,
            settings.eps,
            settings.weight_decay,
            static_cast<double>(settings.corrects_bias ? moment.step : step_without_bias),
            settings.kind == OptimizerKind::adamw ? 1.0 : 0.0,
            settings.maximize ? 1.0 : 0.0};
  }

  /// Corrections are 1 - beta^step, and those of this step are 1: beta is below 1 by 2^-53 at
  /// least.
  static constexpr int64_t step_without_bias = int64_t{1} << 62;
};

/// torch/optim/adamw.py: the decay shrinks the parameter itself.
struct AdamW : Adam {
  static constexpr std::string_view name = "AdamW";
  static OptimizerSettings defaults() {
    return {.kind = OptimizerKind::adamw, .lr = 1e-3, .weight_decay = 0.01};
  }
};

/// QAdamOptimizer of bagua 0.9.2 (algorithms/q_adam.py), whose weight decay changes nothing; its
/// arithmetic is qadam_step.
struct QAdam : OptimizerOfTorch {
  static constexpr std::string_view name = "QAdamOptimizer";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"betas", &OptimizerSettings::beta1, &OptimizerSettings::beta2},
      {"eps", &OptimizerSettings::eps},
      {"weight_decay", &OptimizerSettings::weight_decay}};
  static constexpr MomentumArgument momentum = MomentumArgument::first_beta;
  static constexpr int group_entries = 12;
  static constexpr Kernel own_kernel = Kernel::qadam_step;

  static OptimizerSettings defaults() {
    return {.kind = OptimizerKind::qadam, .lr = 1e-3, .warmup_steps = 100};
  }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    return states_like(parameter, 2);
  }
  static UpdateTemporaries temporaries(const OptimizerSettings& /*settings*/) {
    return {2, 2, false};
  }
  static std::vector<double> scalars(const OptimizerSettings& settings,
                                     const UpdateMoment& moment) {
    return {settings.lr,
            settings.beta1,
            settings.beta2,
            settings.eps,
            static_cast<double>(moment.step),
            moment.step < settings.warmup_steps ? 1.0 : 0.0};
  }
};

}  // namespace lockstep
