#pragma once

#include "model/network/optimizer/update_parts.hpp"

namespace lockstep {

/// torch/optim/adadelta.py
struct Adadelta : OptimizerOfTorch {
  static constexpr std::string_view name = "Adadelta";
  static constexpr OptimizerArgument arguments[] = {
      {"lr", &OptimizerSettings::lr},
      {"rho", &OptimizerSettings::forgetting},
      {"eps", &OptimizerSettings::eps},
      {"weight_decay", &OptimizerSettings::weight_decay},
      {"maximize", nullptr, nullptr, &OptimizerSettings::maximize}};
  static constexpr MomentumArgument momentum = MomentumArgument::none;
  static constexpr int group_entries = 9;

  static OptimizerSettings defaults() {
    return {.kind = OptimizerKind::adadelta, .lr = 1, .eps = 1e-6, .forgetting = 0.9};
  }
  static std::vector<OptimizerState> state(const OptimizerSettings& /*settings*/,
                                           const Shape& parameter) {
    return states_like(parameter, 2);
  }
  static UpdateTemporaries temporaries(const OptimizerSettings& settings) {
    const int changed = adds_decay(settings) || settings.maximize ? 1 : 0;
    return {2 + changed, 2 + changed};
  }

  static int gradient_operands(const OptimizerSettings& /*settings*/) { return 3; }
  template <class Numbers>
  static void update(const OptimizerSettings& settings, const UpdateMoment& /*moment*/,
                     Updated<Numbers> updated) {
    decay(settings, updated);
    Numbers& squares = updated.state[0];
    Numbers& changes = updated.state[1];
    const double rho = settings.forgetting;
    squares.scale(rho);
    squares.add_product(updated.gradient, updated.gradient, 1 - rho);
    Numbers root = squares.clone();
    root.raise(settings.eps);
    root.root();
    Numbers change = changes.clone();
    change.raise(settings.eps);
    change.root();
    change.divide(root);
    change.multiply(updated.gradient);
    changes.scale(rho);
    changes.add_product(change, change, 1 - rho);
    updated.parameter.add(change, -settings.lr);
  }

  // A change is A g / S. S is a norm of the gradients and errs by d at most, A one of the changes
  // before and errs by the same norm of their errors, which is carried on: E = c |A' - A| +
  // A (1 + c) d / S, with c the most that |g| / S can be.
  static void add_sensitivity(const OptimizerSettings& settings, const UpdateMoment& /*moment*/,
                              const SensitivityOfStep& of) {
    const double rho = settings.forgetting;
    const double most = rho < 1 ? 1 / std::sqrt(1 - rho) : std::sqrt(1 / settings.eps);
    std::vector<float>& carried = of.sensitivity.carried;
    carried.resize(of.gradient.size());
    double largest = 0;
    for (size_t i = 0; i < of.gradient.size(); ++i) {
      const double root = std::sqrt(of.state[0][i] + settings.eps);
      const double change = std::sqrt(of.state[1][i] + settings.eps);
      const double before = std::sqrt(static_cast<double>(carried[i]));
      const double error = before * most + change * (1 + most) / (root * std::sqrt(rho));
      carried[i] = static_cast<float>(rho * carried[i] + (1 - rho) * error * error);
      of.add(i, settings.lr * error);
      largest = std::max(largest, change);
    }
    of.sensitivity.at_most += 2 * settings.lr * most * largest / std::sqrt(rho);
  }
};

}  // namespace lockstep
