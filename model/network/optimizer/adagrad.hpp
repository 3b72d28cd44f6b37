#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/adagrad.py
struct Adagrad : OptimizerOfTorch {
  static constexpr std::string_view name = "Adagrad";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"lr_decay", &OptimizerSettings::lr_decay},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"initial_accumulator_value", &OptimizerSettings::initial_accumulator_value},
      {"eps", &OptimizerSettings::eps},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr std::string_view further[] = {"foreach", "differentiable", "fused"};
  static constexpr MomentumArgument momentum = MomentumArgument::none;
  static constexpr int group_entries = 10;

  static OptimizerSettings defaults() {
    return {.kind = OptimizerKind::adagrad, .lr = 0.01, .eps = 1e-10};
  }
  static std::vector<OptimizerState> state(const OptimizerSettings& settings,
                                           const Shape& parameter) {
    return {{elements_of(parameter), settings.initial_accumulator_value}};
  }
  // The root, and the gradients times the rate: in place where they are a copy already.
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    return {2, 1 + (adds_decay(settings) || settings.maximize ? 1 : 0)};
  }

  static double rate(const OptimizerSettings& settings, int64_t step) {
    return settings.lr / (1 + static_cast<double>(step - 1) * settings.lr_decay);
  }
  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 3; }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& moment,
                     Updated<Numbers> updated) {
    const Numbers given = updated.gradient.clone();
    decay(settings, updated);
    updated.state[0].add_product(updated.gradient, updated.gradient, 1);
    Numbers root = updated.state[0].clone();
    root.root();
    root.raise(settings.eps);
    // DeepSpeedCPUAdagrad (cpu_adagrad.cpp) adds the decay to what it squares alone.
    const Numbers& direction = settings.is_on_host ? given : updated.gradient;
    updated.parameter.add_quotient(direction, root, -rate(settings, moment.step));
  }

  // |g| is at most the root of the sum s, and an error d of all gradients changes s by d times the
  // root of their number at most.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const SensitivityOfStep& of) {
    const double lr = rate(settings, moment.step);
    const double reach = 1 + std::sqrt(static_cast<double>(moment.step));
    for (size_t i = 0; i < of.gradient.size(); ++i) {
      of.add(i, lr * reach / (std::sqrt(of.state[0][i]) + settings.eps));
    }
    of.sensitivity.at_most += 2 * lr;
  }
};

}  // namespace lockstep
