#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/nadam.py
struct NAdam : OptimizerOfTorch {
  static constexpr std::string_view name = "NAdam";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"betas", &OptimizerSettings::beta1, &OptimizerSettings::beta2},
      {"eps", &OptimizerSettings::eps},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"momentum_decay", &OptimizerSettings::momentum_decay},
      {"decoupled_weight_decay", nullptr, nullptr, &OptimizerSettings::decoupled_weight_decay},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr MomentumArgument momentum = MomentumArgument::first_beta;
  static constexpr int counters = 2;  // step, mu_product
  static constexpr int group_entries = 11;

  static OptimizerSettings defaults() { return {.kind = OptimizerKind::nadam, .lr = 2e-3}; }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    return states_like(parameter, 2);
  }
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    const int changed = adds_decay(settings) || settings.maximize ? 1 : 0;
    return {1 + changed, 2 + changed};
  }

  static double mu(const OptimizerSettings& settings, int64_t step) {
    return settings.beta1 *
           (1.0 - 0.5 * std::pow(0.96, static_cast<double>(step) * settings.momentum_decay));
  }
  // The product is a tensor of fp32.
  static std::array<double, 2> advance(const OptimizerSettings& settings, int64_t step,
                                       std::array<double, 2>& kept) {
    const float before = step == 1 ? 1.0F : static_cast<float>(kept[0]);
    kept[0] = static_cast<double>(before * static_cast<float>(mu(settings, step)));
    return kept;
  }
  /// How far it goes by the gradient, and by the moment.
  static std::array<double, 2> rates(const OptimizerSettings& settings,
                                     const UpdateMoment& moment) {
    const double product = moment.numbers[0];
    const double next = mu(settings, moment.step + 1);
    return {settings.lr * (1.0 - mu(settings, moment.step)) / (1.0 - product),
            settings.lr * next / (1.0 - product * next)};
  }

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 4; }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& moment,
                     Updated<Numbers> updated) {
    decay(settings, updated);
    updated.state[0].approach(updated.gradient, 1 - settings.beta1);
    updated.state[1].scale(settings.beta2);
    updated.state[1].add_product(updated.gradient, updated.gradient, 1 - settings.beta2);
    Numbers root = updated.state[1].clone();
    root.divide(correction(settings.beta2, moment.step));
    root.root();
    root.raise(settings.eps);
    const auto [by_gradient, by_moment] = rates(settings, moment);
    updated.parameter.add_quotient(updated.gradient, root, -by_gradient);
    updated.parameter.add_quotient(updated.state[0], root, -by_moment);
  }

  // As Adam's, of two numerators: |g| is at most the corrected root times sqrt of the correction
  // over 1 - beta2, and the moment, which is not corrected, no more than that.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const SensitivityOfStep& of) {
    const double corrected = correction(settings.beta2, moment.step);
    const double most = std::sqrt(corrected / (1 - settings.beta2));
    const auto [by_gradient, by_moment] = rates(settings, moment);
    const double reach = (by_gradient + by_moment) * (1 + most);
    for (size_t i = 0; i < of.gradient.size(); ++i) {
      of.add(i, reach / (std::sqrt(of.state[1][i] / corrected) + settings.eps));
    }
    of.sensitivity.at_most += 2 * (by_gradient + by_moment) * most;
  }
};

}  // namespace lockstep
